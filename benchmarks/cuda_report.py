"""The page of results of benchmarks.cuda, written from its numbers: tables and the figure."""

from benchmarks import cuda_predicting

P = 128
SQRT = 11  # candidate features


def format_seconds(seconds):
    """Return a time with two digits, in milliseconds or seconds."""
    unit, value = ("ms", 1e3 * seconds) if seconds < 0.5 else ("s", seconds)
    return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"


def summary_rows(found):
    """Return what was timed, the number of rows, the time on the GPU and that on the CPU."""
    one = {r["n"]: f"{format_seconds(r['cpu_tree'])}, one core" for r in found["whole"]}
    rows = [
        (
            f"a full extra-tree, 256 dimensions, {r['K']} candidate features",
            r["n"],
            r["ms"] / 1e3,
            one[r["n"]] if r["K"] == SQRT else "",
        )
        for r in found["growth"]
        if r["rank"] == 256 and r["n"] in one
    ]
    rows += [
        ("100 such trees with 11, from NumPy arrays to a fitted forest", r["n"], r["seconds"], "")
        for r in found["whole"]
    ]
    rows += [
        (
            f"a tree with best splits, 64 dimensions, {SQRT} candidate features, depth 16",
            r["n"],
            r["ms"] / 1e3,
            f"{format_seconds(r['cpu_tree'])}, one core" if "cpu_tree" in r else "",
        )
        for r in found.get("best", ())
    ]
    for r in [found["boosting"]] if "boosting" in found else []:
        cpu = f"{format_seconds(r['cpu_ms'] / 1e3)}, one core"
        what = "a round of boosting, 256 dimensions, at most 15 splits"
        rows += [
            (what, r["n"], r["ms"] / 1e3, cpu),
            (f"{r['rounds']} such rounds, from NumPy arrays", r["n"], r["seconds"], ""),
        ]
    rows += [
        (
            f"nearest of {r['candidates']:,} candidates on the GPU, {r['q']} dimensions, "
            f"{r['kernel']} kernel",
            r["queries"],
            r["on_gpu"],
            f"{format_seconds(r['cpu'])} for {r['checked']} rows, all cores",
        )
        for r in found.get("preimages", ())
    ]
    rows += [
        (
            f"`{r['method']}` of {r['trees']} trees, X on the GPU",
            r["n"],
            r["on_gpu"],
            f"{format_seconds(r['cpu'])}, all cores",
        )
        for r in found.get("predictions", ())
    ]
    return rows


def summary_lines(found):
    """Return the section that the guide shows."""
    return [
        "",
        "## Summary",
        "",
        "| | rows | GPU | CPU |",
        "|---|---:|---:|---:|",
        *(
            f"| {what} | {n:,} | {format_seconds(seconds)} | {cpu} |"
            for what, n, seconds, cpu in summary_rows(found)
        ),
    ]


def best_lines(results):
    """Return the section on best splits."""
    lines = [
        "",
        "## Random forests with best splits, 64 dimensions, max_depth 16, from NumPy arrays",
        "",
        "| rows | trees | candidate features | seconds | ms per tree | "
        "one tree on one CPU core, s | first tree equal on the CPU |",
        "|---:|---:|---:|---:|---:|---:|---|",
    ]
    for r in results:
        cpu = f"{r['cpu_tree']:.2f} | {'yes' if r['same'] else 'no'}" if "same" in r else "– | –"
        lines.append(
            f"| {r['n']:,} | {r['trees']} | {SQRT} | {r['seconds']:.2f} | {r['ms']:.1f} | {cpu} |"
        )
    return lines


def boosting_lines(r):
    """Return the section on boosting."""
    return [
        "",
        "## Boosting, 256 dimensions, at most 15 splits a tree, from NumPy arrays",
        "",
        "| rows | rounds | candidate features | seconds | ms per round | "
        "one CPU core, ms per round |",
        "|---:|---:|---:|---:|---:|---:|",
        f"| {r['n']:,} | {r['rounds']} | {SQRT} | {r['seconds']:.2f} | {r['ms']:.2f} | "
        f"{r['cpu_ms']:.0f} |",
    ]


def report(found):
    """Return the results as a page of Markdown."""
    lines = ["# Trees on a GPU", "", "By `python -m benchmarks.cuda`. The machine:", ""]
    lines += [f"- {name}: {value}" for name, value in found["machine"].items()]
    lines += [
        "",
        f"Inputs have {P} features of float32. A copy on this GPU moves {found['copy']:.2f} TB/s. "
        "*Outputs read* is the outputs that the nodes of more than 32 rows and the small subtrees "
        "must read, divided by the time.",
        *summary_lines(found),
        "",
        "## Full extra-trees",
        "",
        "| rows | dimensions of outputs | candidate features | trees at once | ms per tree | "
        "100 trees, s | outputs read, TB/s |",
        "|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {r['n']:,} | {r['rank']} | {r['K']} | {r['at_once']} | {r['ms']:.2f} | "
        f"{r['ms'] / 10:.2f} | {r['rate']:.2f} |"
        for r in found["growth"]
    ]
    lines += [
        "",
        "## A forest of 100 trees, 256 dimensions, from NumPy arrays to NumPy arrays",
        "",
        "The arrays of full trees are large (about 90 bytes per row and tree): copying them to the "
        "host takes longer than growing them.",
        "",
        "| rows | seconds | one tree on one CPU core, s | growth on the GPU against one core |",
        "|---:|---:|---:|---:|",
    ]
    for r in found["whole"]:
        on_gpu = [
            g["ms"] for g in found["growth"] if (g["n"], g["rank"], g["K"]) == (r["n"], 256, SQRT)
        ]
        lines.append(
            f"| {r['n']:,} | {r['seconds']:.2f} | {r['cpu_tree']:.2f} | "
            f"{1e3 * r['cpu_tree'] / on_gpu[0]:.0f}× |"
        )
    if "best" in found:
        lines += best_lines(found["best"])
    if "boosting" in found:
        lines += boosting_lines(found["boosting"])
    lines += [
        "",
        "## The same trees",
        "",
        f"Of 16 trees on 20,000 rows with outputs of 64 dimensions, {found['same']} are the "
        "same on the CPU: features, thresholds, nodes and members.",
        f"The kernel R² of 50 trees on 5,000 held-out rows is {found['scores'][0]:.6f} on the CPU "
        f"and {found['scores'][1]:.6f} on the GPU.",
        *cuda_predicting.report(found),
    ]
    return "\n".join(lines) + "\n"


def plot(found, path):
    """Draw how the time per tree grows with the number of rows."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.8), layout="constrained")
    for rank in (64, 256, 1024):
        for max_features, style in ((SQRT, "o-"), (P, "s--")):
            points = [
                (r["n"], r["ms"])
                for r in found["growth"]
                if (r["rank"], r["K"]) == (rank, max_features)
            ]
            if points:
                color = {64: "C0", 256: "C1", 1024: "C2"}[rank]
                label = f"{rank} dimensions, {max_features} candidates"
                axes.loglog(*zip(*points, strict=True), style, color=color, label=label, ms=4)
    axes.set(xlabel="rows", ylabel="milliseconds per tree", title=found["machine"]["GPU"])
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=120)
