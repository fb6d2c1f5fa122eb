import { describe, expect, it } from "vitest";
import { openTemplate, strftime, TemplateRefusal } from "./jinja.js";

describe("openTemplate", () => {
  it.each([
    ["{% for i in range(3) %}{{ i }}{% endfor %}", "012"],
    ["{{ range(2, 8, 3) | list | join(',') }}", "2,5"],
    ["{{ range(3, 0, -1) | list | join(',') }}", "3,2,1"],
    ["{{ x if x is defined and x is not none else 'nothing' }}", "nothing"],
    ["{% if True and not False and None is none %}yes{% endif %}", "yes"],
    ["{% generation %}kept{% endgeneration %}", "kept"],
    ["a\n  {% if true %}\n  b\n  {% endif %}\nc", "a\n  b\nc"],
  ])("renders %j", (source, text) => {
    expect(openTemplate(source)({ x: null })).toBe(text);
  });

  it("tells a template's own refusal from its failure", () => {
    expect(() => openTemplate("{{ raise_exception('no tools') }}")({})).toThrow(new TemplateRefusal("no tools"));
    expect(() => openTemplate("{{ nothing.here() }}")({})).not.toThrow(TemplateRefusal);
    expect(() => openTemplate("{{ nothing.here() }}")({})).toThrow();
  });

  it("lets no variable take a global's place", () => {
    expect(openTemplate("{{ true }}")({ true: "false" })).toBe("true");
  });

  it("refuses what is no template", () => {
    expect(() => openTemplate("{% for %}")).toThrow();
  });
});

describe("strftime", () => {
  const time = new Date(2026, 0, 5, 7, 8, 9);

  it.each([
    ["%d %b %Y", "05 Jan 2026"],
    ["%Y-%m-%d %H:%M:%S", "2026-01-05 07:08:09"],
    ["%A, %B %d, %y", "Monday, January 05, 26"],
    ["%a 100%% %q", "Mon 100% %q"],
  ])("%s", (format, text) => {
    expect(strftime(time, format)).toBe(text);
  });
});
