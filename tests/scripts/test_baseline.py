# SPDX-License-Identifier: MIT
"""`skbench baseline` over the fake binary: what is stored, and what a check says."""

import json
import unittest
from unittest import mock
from xml.etree import ElementTree

import compare_support as cs
from skbench_lib import baseline, compare, duet, results, sides, table

CASES = [f"skb/clone/frags:{frags}/alloc:slub" for frags in (0, 2, 16)]


@unittest.skipIf(cs.QUICK, cs.TAKES_A_MINUTE)
class Baseline(unittest.TestCase):
    def setUp(self):
        self.tree = cs.Tree(cases=CASES, sigma=0.001)
        self.addCleanup(self.tree.close)

    def quiet(self, path):
        """Notes in the stored baseline that the machine was quiet, which it is not always while tests run."""
        document = json.loads(path.read_text())
        document["context"]["skbench"]["fingerprint"]["condition"].update(other_cpu_share=0.0, steal_share=0.0)
        path.write_text(json.dumps(document))

    def measured(self, name="new.json", **plan):
        """A quiet result of the suite `quick`."""
        self.tree.plan(**plan)
        path = self.tree.root / name
        status, out, err = self.tree.run("run", "--suite", "quick", "--out", path, "--seed", 5)
        self.assertIn(status, (0, 1), err)  # 1: a stored baseline was better, and the machine quiet enough to say so
        self.quiet(path)
        return path

    def stored(self):
        return sorted((self.tree.root / "results" / "baselines").glob("*/*.json"))

    def save(self, *args):
        status, out, err = self.tree.run("baseline", "save", "main", "--seed", 1, *args)
        self.assertEqual((status, err), (0, ""))
        path, = self.stored()
        self.quiet(path)
        return path, out

    def test_save(self):
        path, out = self.save()
        self.assertIn(f"stored 3 cases and the ledger of 3 in results/baselines/{path.parent.name}/main.json", out)
        document = results.read(path)
        ours = document["context"]["skbench"]
        self.assertEqual((document["benchmarks"], path.parent.name), ([], ours["fingerprint"]["fp8"]))
        self.assertEqual([entry["case"] for entry in ours["cases"]], CASES)
        for entry in ours["cases"]:
            self.assertEqual((len(entry["values"]), entry["value"]["n"], entry["plan"]["batches"]), (15, 15, 40))
            self.assertTrue(entry["value"]["lo"] <= entry["value"]["median"] <= entry["value"]["hi"])
        self.assertEqual([entry["case"] for entry in ours["ledger"]], CASES)
        self.assertLess(path.stat().st_size, 30000)
        before = path.read_bytes()
        status, _, err = self.tree.run("baseline", "save", "main")
        self.assertEqual((status, path.read_bytes()), (2, before))
        self.assertIn("--replace takes its place", err)
        self.assertEqual(self.tree.run("baseline", "save", "main", "--replace", "--filter", "frags:2/")[0], 0)
        self.assertEqual(len(results.read(path)["context"]["skbench"]["cases"]), 1)

    def test_save_a_result(self):
        result = self.measured()
        path, _ = self.save("--run", result)
        case = results.read(path)["context"]["skbench"]["cases"][0]
        values = [row["skb"]["value"] for row in results.read(result)["benchmarks"] if row["name"] == case["case"]]
        self.assertEqual(case["values"], [round(value, 4) for value in values])
        document = json.loads(result.read_text())
        document["context"]["skbench"].update(partial=True, partial_reason="interrupted")
        result.write_text(json.dumps(document))
        status, _, err = self.tree.run("baseline", "save", "other", "--run", result)
        self.assertEqual(status, 2)
        self.assertIn("partial (interrupted)", err)

    def test_check_a_result(self):
        self.save()
        for factor, status, words in ((1.0, 0, "3 equivalent"), (1.08, 1, "3 regression"), (0.9, 0, "3 improvement")):
            result = self.measured(f"r{factor}.json", value=1000.0 * factor, seed=7)
            got, out, err = self.tree.run("baseline", "check", "main", "--run", result)
            self.assertEqual((got, err), (status, ""), out)
            self.assertIn(words, out)
            for line in out.splitlines():
                self.assertLessEqual(table.width(line), 80)

    def test_check_measures_and_confirms(self):
        self.save()
        self.tree.plan(value=1100.0, seed=3)
        target = self.tree.root / "r.xml"
        status, out, err = self.tree.run("baseline", "check", "main", "--json", "-", "--junit", target)
        report = json.loads(out)
        busy = report["new"]["untrusted"]
        if busy:  # others had the CPUs: then there is no verdict to confirm, which is the answer as well
            self.assertEqual((status, {row["verdict"] for row in report["rows"]}), (3, {"inconclusive"}))
            return
        self.assertEqual(status, 1)
        for row in report["rows"]:
            self.assertEqual((row["verdict"], row["fails"], row["new"]["n"]), ("regression", True, 25))
            self.assertIn("confirming run +", row["reason"])
        self.assertEqual(ElementTree.parse(target).getroot().get("failures"), "3")

    def test_what_is_not_confirmed_does_not_fail(self):
        case = CASES[0]
        base = sides.native(cs.survey({case: cs.noise(1, 100, 15)}), "base")
        new = sides.native(cs.survey({case: cs.noise(2, 110, 15)}), "new")
        for second, verdict, fails in ((110, "regression", True), (100, "inconclusive", False)):
            report = compare.judge(base, new)
            self.assertEqual((report["rows"][0]["verdict"], report["rows"][0]["fails"]), ("regression", True))
            cell = duet.SurveyCell(duet.Side(None, case, "single"), 15)
            cell.n = 200
            values = iter(cs.noise(3, second, 25))
            sampler = mock.Mock(side_effect=lambda *args: {"busy": {"p33": next(values)}})
            with mock.patch.object(duet, "process_sampler", return_value=sampler):
                baseline.confirm(report, base, mock.Mock(cells=[cell]), mock.Mock(seed=1, cpus=None))
            entry = report["rows"][0]
            self.assertEqual((entry["verdict"], entry["fails"]), (verdict, fails))
            self.assertIn("confirming run", entry["reason"])

    def test_a_changed_ledger_fails(self):
        path, _ = self.save()
        document = json.loads(path.read_text())
        document["context"]["skbench"]["ledger"][0]["rows"][0]["rmw"] += 1
        path.write_text(json.dumps(document))
        status, out, _ = self.tree.run("baseline", "check", "main")
        self.assertEqual(status, 1)
        self.assertIn("the ledger changed", out)

    def test_no_baseline_is_no_error(self):
        status, out, err = self.tree.run("baseline", "check", "main")
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out, r"^no-baseline: no baseline 'main' for this machine and build \([0-9a-f]{8}\)")
        path, _ = self.save()
        path.parent.rename(path.parent.with_name("0" * 8))
        status, out, _ = self.tree.run("baseline", "check", "main")
        self.assertEqual(status, 0)
        self.assertIn("there is one for 00000000", " ".join(out.split()))

    def test_a_new_case_has_no_baseline(self):
        self.save()
        result = self.measured(cases=CASES + ["skb/more/frags:2"])
        status, out, _ = self.tree.run("baseline", "check", "main", "--run", result)
        self.assertEqual(status, 0)
        self.assertIn("no-baseline (1)\n  skb/more/frags:2", out)

    def test_renamed_cases_keep_their_baseline(self):
        self.save()
        (self.tree.root / "results" / "aliases.txt").write_text(f"{CASES[0]} skb/copy/frags:0\n")
        result = self.measured(cases=["skb/copy/frags:0"] + CASES[1:], value=1080.0)
        status, out, _ = self.tree.run("baseline", "check", "main", "--run", result)
        self.assertEqual(status, 1)
        self.assertIn(f"renamed from {CASES[0]}", " ".join(out.split()))

    def test_a_run_ends_with_it(self):
        self.save()
        self.tree.plan(value=1300.0)
        status, out, err = self.tree.run("run", "--suite", "quick", "--seed", 5)
        self.assertEqual(err, "")
        self.assertRegex(" ".join(out.split()), r"baseline main: times: 3 (regression; confirmed skb/\S+ \+(29|30)\.\d+ % "
                                                r"|inconclusive; not judged: )")
        self.assertIn(status, (0, 1))  # a busy machine is not judged

    def test_list_and_show(self):
        self.assertIn("no baseline is stored", self.tree.run("baseline", "list")[1])
        path, _ = self.save()
        status, out, _ = self.tree.run("baseline", "list", "--json", "-")
        entry, = json.loads(out)["baselines"]
        self.assertEqual((entry["name"], entry["fp8"], entry["cases"]), ("main", path.parent.name, 3))
        status, out, _ = self.tree.run("baseline", "show", "main")
        self.assertEqual((status, out.count(" n=15\n")), (0, 3))
        self.assertIn("ledger of 3 cases", out)
        other = path.parent.with_name("0" * 8)
        other.mkdir()
        (other / "main.json").write_bytes(path.read_bytes())
        status, _, err = self.tree.run("baseline", "show", "main")
        self.assertEqual(status, 2)
        self.assertIn("choose one with --machine", err)
        self.assertEqual(self.tree.run("baseline", "show", "main", "--machine", "0" * 8)[0], 0)

    def test_wrong_use(self):
        for args, pattern in ((("show", "none"), "no baseline 'none' is stored"), (("save", "../x"), "make a name"),
                              (("save",), "required: NAME"), ((), "required: ACTION"),
                              (("check", "main", "--run", "none.json"), "none.json: No such file"),
                              (("save", "main", "--filter", "zzz"), "no case")):
            status, out, err = self.tree.run("baseline", *args)
            self.assertEqual((status, out, err.count("\n")), (2, "", 1), err)
            self.assertIn(pattern, err)


if __name__ == "__main__":
    unittest.main()
