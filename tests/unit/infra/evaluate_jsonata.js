// Evaluates JSONata as Step Functions does: reads [{expression, errorOutput}] from stdin, prints [{value} or {error}].
// The first argument is the path of the library.
const jsonata = require(process.argv[2]);

async function evaluate({ expression, errorOutput }) {
  try {
    const compiled = jsonata(expression);
    if (errorOutput === undefined) return { value: null };
    // Of Step Functions' own functions, the only one that expressions of a Catch use.
    compiled.registerFunction("parse", (text) => (text === undefined ? undefined : JSON.parse(text)), "<s?:x>");
    return { value: await compiled.evaluate({}, { states: { errorOutput } }) };
  } catch (error) {
    return { error: String(error.message ?? error) };
  }
}

const cases = JSON.parse(require("fs").readFileSync(0, "utf8"));
Promise.all(cases.map(evaluate)).then((results) => console.log(JSON.stringify(results)));
