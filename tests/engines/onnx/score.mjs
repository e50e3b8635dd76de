// Scores rows by an ONNX graph in JavaScript: node score.mjs fraud.onnx fraud.json < rows.json
// fraud.json is what `fewlier export --json` has printed.
import { readFileSync } from "node:fs";
import * as ort from "onnxruntime-web";

const [model, facts] = process.argv.slice(2);
const { inputs, missing } = JSON.parse(readFileSync(facts, "utf8"));
const rows = JSON.parse(readFileSync(0, "utf8"));
ort.env.wasm.numThreads = 1;
const session = await ort.InferenceSession.create(readFileSync(model));

const LEAST = -(2n ** 63n);
const isMissing = (cell) =>
  cell === null || cell === undefined || missing.includes(String(cell).trim());
const feeds = {};
for (const { name, form, codes } of inputs) {
  const cells = rows.map((row) => row[name]);
  const tensor = (type, values) => new ort.Tensor(type, values, [rows.length]);
  const integers = (gap, read) =>
    tensor("int64", BigInt64Array.from(cells, (cell) => (isMissing(cell) ? gap : read(cell))));
  const known = new Map(Object.entries(codes ?? {}));
  feeds[name] = {
    number: () => tensor("float64", Float64Array.from(cells, (cell) => cell ?? NaN)),
    category: () => integers(-1n, (cell) => BigInt(known.get(cell) ?? -2)),
    date: () => integers(LEAST, BigInt), // microseconds
    offset: () => tensor("int32", Int32Array.from(cells, (cell) => cell ?? 0)), // minutes
  }[form]();
}
const { anomaly_score, p_value, is_anomaly } = await session.run(feeds);
console.log(
  JSON.stringify(
    rows.map((_, row) => ({
      anomaly_score: anomaly_score.data[row],
      p_value: p_value.data[row],
      is_anomaly: Boolean(is_anomaly.data[row]),
    })),
  ),
);
