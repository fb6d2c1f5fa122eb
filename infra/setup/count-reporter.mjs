/** A vitest reporter that leaves the counts in a file, for a last line that does not depend on how the run is shown. */
import { writeFileSync } from "node:fs";

export default class CountReporter {
  onTestRunEnd(modules, unhandledErrors) {
    const counts = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
    for (const module of modules) {
      // A file that cannot be loaded, or a suite whose set-up fails, has no failed test to show for it.
      const broken = [module, ...module.children.allSuites()].filter((part) => part.errors().length > 0);
      counts.failed += broken.length;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        counts[state === "passed" || state === "failed" ? state : "skipped"] += 1;
      }
    }
    writeFileSync(process.env.BATON_TEST_COUNTS, JSON.stringify(counts));
  }
}
