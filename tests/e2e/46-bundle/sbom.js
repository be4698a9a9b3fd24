// sbom.js CDX SPDX SPDX-SCHEMA...: CycloneDX's own strict validator; ajv with each schema and a parser
// of licence expressions for SPDX, and that its references lead somewhere. Prints "valid" twice.
const fs = require("fs");
const [cdx, spdx, ...schemas] = process.argv.slice(2);
const read = (f) => fs.readFileSync(f, "utf8");
const { Validation, Spec } = require("@cyclonedx/cyclonedx-library");
const fail = (what, why) => { console.log(what + ": " + JSON.stringify(why)); process.exitCode = 1; };

function checkSpdx() {
  const doc = JSON.parse(read(spdx));
  for (const s of schemas) {
    const ajv = new (require("ajv"))({ allErrors: true, strict: false });
    require("ajv-formats")(ajv);
    const ok = ajv.compile(JSON.parse(read(s)));
    if (!ok(doc)) return fail("spdx", ok.errors);
  }
  const parse = require("spdx-expression-parse");
  const ids = new Set([doc.SPDXID]);
  for (const p of doc.packages) {
    if (ids.has(p.SPDXID)) return fail("spdx", p.SPDXID + " twice");
    ids.add(p.SPDXID);
    try { if (p.licenseDeclared !== "NOASSERTION") parse(p.licenseDeclared); }
    catch (e) { return fail("spdx", p.licenseDeclared + ": " + e.message); }
  }
  for (const r of doc.relationships)
    if (!ids.has(r.spdxElementId) || !ids.has(r.relatedSpdxElement)) return fail("spdx", r);
  console.log("spdx valid");
}

new Validation.JsonStrictValidator(Spec.Version.v1dot5).validate(read(cdx)).then((e) => {
  if (e) return fail("cyclonedx", e);
  console.log("cyclonedx valid");
}).then(checkSpdx).catch((e) => fail("error", String(e)));
