/** Says which Node is needed before anything newer than it is loaded, so this file imports nothing and uses old syntax only. */
const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error("Baton needs Node.js 20.19 or newer (24 is a good choice); this is " + process.versions.node + ".");
  process.exit(1);
}
