// docs/parameters.md, made from the tables so that it cannot disagree with them.
#include <fmt/format.h>

#include "krigtune/space/well_known.h"

namespace krigtune {
namespace {

constexpr const char* kIntroduction = R"(# Parameters, conditions and constraints

This page is made from the tables in the program (`test_space_well_known --write-reference docs/parameters.md`).

## Well-known parameters

A parameter may have any name; these ones krigtune understands. Where a parameter changes nothing it has one canonical
value, the first of its range, so that no meaning is measured twice. A well-known parameter that is not in the space
stands for its default in constraints and conditions.

)";

constexpr const char* kAliases = R"(
### Other names

Frameworks and launchers have names of their own for the same parameters. krigtune does not guess what they mean: it says
which name to use, and until then predicts as if the parameter stood at its default.

| name | is krigtune's | so called by |
|---|---|---|
)";

constexpr const char* kFixed = R"(
### Parameters that do not vary

`"fixed": {"sequence_parallel": true}` gives a parameter one value. It is written into every configuration and every
export, constraints and predictions know it, and it is no dimension of the search and no column of a table.
What a session does not name has its default, except where the workload's framework usually sets something else (Megatron
and nanotron: `sequence_parallel` with tensor parallelism, and the distributed optimizer; FSDP: `zero_stage` 3).
`krigtune plan` lists what it assumes in this way.
)";

constexpr const char* kKinds = R"(
## Kinds of parameters

```jsonc
"space": {
  "zero_stage": [0, 1, 2, 3],                                      // a list of numbers: the values, in this order
  "overlap_comm": [true, false],
  "offload_optimizer": ["none", "cpu"],                            // a list of texts: categories, without an order
  "micro_batch": {"min": 1, "max": 64, "scale": "log2"},           // the powers of two from 1 to 64
  "workers": {"min": 0, "max": 8},                                 // every integer
  "reduce_bucket_size": {"min": 1e6, "max": 1e9, "scale": "log", "steps": 16},  // 16 integers, both ends included
  "lr": {"type": "real", "min": 1e-5, "max": 1e-1, "scale": "log"},             // every real number between
  "dropout": {"type": "real", "min": 0, "max": 0.5, "steps": 6},                // 0, 0.1, 0.2, 0.3, 0.4, 0.5
  "warmup": {"values": [10, 100, 1000], "scale": "log"},           // a list that lies as numbers do on a log scale
  "stage3_prefetch_bucket_size": {"min": 1e6, "max": 1e8, "scale": "log", "steps": 5, "when": "zero_stage == 3"},
  "nvme_buffers": {"values": [4, 8], "when": "offload_optimizer == 'nvme' || offload_param == 'nvme'"}
}
```

`when`: the parameter exists only where the condition holds; elsewhere configurations lack it.
A space with a real range without `steps` cannot be counted or listed; it is sampled.

## Conditions

A constraint, and a `when`, is a condition over parameters and facts:

```text
||   &&   == != <= >= < >   + -   * / %   ! -   ( )  min(a, b, ...)  max(a, b, ...)      loosest first
names, numbers (1, 2.5, 1e6), true, false, 'text'
```

true and false are 1 and 0 in a calculation. Texts know `==` and `!=` only. Comparisons do not chain: write
`1 <= a && a <= 8`. A comparison with the result of a division by zero does not hold. Where a condition depends on a
parameter that does not exist in a configuration, it is unknown (Kleene: `false && unknown` is false): a constraint then
does not apply, a `when` does not hold.

```jsonc
"constraints": ["tensor_parallel <= gpus_per_node", "micro_batch * seq_len <= 65536", "!overlap_comm || zero_stage >= 1"]
```

## Facts

)";

std::string cell(std::string_view text) { return text.empty() ? "-" : std::string(text); }
std::string code(std::string_view text) { return text.empty() ? "-" : fmt::format("`{}`", text); }

}  // namespace

std::string parameter_reference() {
  std::string page = kIntroduction;
  page += "| name | is | unit | no effect | DeepSpeed key | default | default range |\n|---|---|---|---|---|---|---|\n";
  for (const WellKnownParameter& known : well_known_parameters()) {
    page += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} |\n", known.name, known.meaning, cell(known.unit),
                        cell(known.no_effect), code(known.deepspeed.key), to_string(known.default_value),
                        code(known.default_range));
  }
  page += kAliases;
  for (const WellKnownParameter& known : well_known_parameters()) {
    for (const OtherName& other : known.other_names) {
      page += fmt::format("| `{}` | `{}` | {} |\n", other.name, known.name, other.where);
    }
  }
  page += kFixed;
  page += kKinds;
  page += "| name | is |\n|---|---|\n";
  for (const KnownFact& fact : known_facts()) page += fmt::format("| `{}` | {} |\n", fact.name, fact.meaning);
  return page;
}

}  // namespace krigtune
