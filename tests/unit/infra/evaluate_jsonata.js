// Evaluates JSONata as Step Functions does: reads [{expression, states, variables}] from stdin, prints [{value} or {error}].
// Without states an expression is only compiled. The first argument is the path of the library.
const jsonata = require(process.argv[2]);
const { createHash } = require("crypto");

async function evaluate({ expression, states, variables = {} }) {
  try {
    const compiled = jsonata(expression);
    if (states === undefined) return { value: null };
    // Of Step Functions' own functions, those that the machines use.
    compiled.registerFunction("parse", (text) => (text === undefined ? undefined : JSON.parse(text)), "<s?:x>");
    compiled.registerFunction("hash", (text, name) => createHash(name.replace("-", "")).update(text).digest("hex"), "<ss:s>");
    return { value: await compiled.evaluate(undefined, { ...variables, states }) };
  } catch (error) {
    return { error: String(error.message ?? error) };
  }
}

const cases = JSON.parse(require("fs").readFileSync(0, "utf8"));
Promise.all(cases.map(evaluate)).then((results) => console.log(JSON.stringify(results)));
