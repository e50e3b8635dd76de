// Scores rows by an ONNX graph in JavaScript: node score.mjs fraud.onnx fraud.json < rows.json
// fraud.json is what `fewlier export --json` has printed.
import { readFileSync } from "node:fs";
import * as ort from "onnxruntime-web";

const [model, facts] = process.argv.slice(2);
const { inputs } = JSON.parse(readFileSync(facts, "utf8"));
const rows = JSON.parse(readFileSync(0, "utf8"));
ort.env.wasm.numThreads = 1;
const session = await ort.InferenceSession.create(readFileSync(model));

const feeds = {};
for (const { name, form, codes } of inputs) {
  const cells = rows.map((row) => row[name]);
  feeds[name] =
    form === "number"
      ? new ort.Tensor("float64", Float64Array.from(cells, (cell) => cell ?? NaN), [rows.length])
      : new ort.Tensor(
          "int64",
          BigInt64Array.from(cells, (cell) => BigInt(cell === null ? -1 : (codes[cell] ?? -2))),
          [rows.length],
        );
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
