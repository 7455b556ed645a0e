// Runs snarkjs in one process: reads jobs (a JSON list) from stdin, writes one result a job.
import { createRequire } from "module";
import fs from "fs";
import path from "path";

const require = createRequire(path.join(process.argv[2], "package.json"));
const snarkjs = require("snarkjs");
const builder = async (dir, name) => {
    const make = require(path.join(dir, `${name}_js`, "witness_calculator.js"));
    return make(fs.readFileSync(path.join(dir, `${name}_js`, `${name}.wasm`)));
};

const json = (file) => JSON.parse(fs.readFileSync(file));
const save = (file, value) => fs.writeFileSync(file, JSON.stringify(value));

const work = {
    async witness({ dir, name, input, out }) {
        const calculator = await builder(dir, name);
        fs.writeFileSync(out, await calculator.calculateWTNSBin(input, true));
        return true;
    },
    async ptau({ out, power }) {
        const curve = await snarkjs.curves.getCurveFromName("bls12381");
        const steps = [`${out}.0`, `${out}.1`];
        await snarkjs.powersOfTau.newAccumulator(curve, power, steps[0]);
        await snarkjs.powersOfTau.contribute(steps[0], steps[1], "test", "entropy of a test");
        await snarkjs.powersOfTau.preparePhase2(steps[1], out);
        steps.forEach((file) => fs.unlinkSync(file));
        return true;
    },
    async setup({ r1cs, ptau, zkey, vkey }) {
        await snarkjs.zKey.newZKey(r1cs, ptau, zkey);
        save(vkey, await snarkjs.zKey.exportVerificationKey(zkey));
        return true;
    },
    async contribute({ zkey, out, vkey }) {
        await snarkjs.zKey.contribute(zkey, out, "test", "entropy of a test");
        save(vkey, await snarkjs.zKey.exportVerificationKey(out));
        return true;
    },
    async beacon({ zkey, out, name, beacon, iterations }) {
        await snarkjs.zKey.beacon(zkey, out, name, beacon, iterations);
        return true;
    },
    async export_vkey({ zkey, vkey }) {
        save(vkey, await snarkjs.zKey.exportVerificationKey(zkey));
        return true;
    },
    async verify_key({ r1cs, ptau, zkey }) {
        return snarkjs.zKey.verifyFromR1cs(r1cs, ptau, zkey);
    },
    async prove({ zkey, wtns, proof, publics }) {
        const made = await snarkjs.groth16.prove(zkey, wtns);
        save(proof, made.proof);
        save(publics, made.publicSignals);
        return true;
    },
    async verify({ vkey, proof, publics }) {
        return snarkjs.groth16.verify(json(vkey), json(publics), json(proof));
    },
};

const log = console.log;
console.log = () => {};
const results = [];
for (const job of JSON.parse(fs.readFileSync(0))) {
    const start = process.hrtime.bigint();
    try {
        const value = await work[job.do](job);
        results.push({ value, seconds: Number(process.hrtime.bigint() - start) / 1e9 });
    } catch (error) {
        results.push({ error: String(error.message ?? error) });
    }
}
log(JSON.stringify(results));
process.exit(0);
