// The block "runner": one object for each kind, as the entries of the runners' registry read them.
#include "krigtune/runner/runner.h"
#include "session/schema_blocks.h"
#include "session/schema_words.h"

namespace krigtune::schema {
namespace {

Json seconds(const char* meaning, double fallback) {
  return with_default(above(number(meaning), 0), json_number(fallback));
}

Json kind_is(const char* kind) { return {{"description", "who runs it"}, {"const", kind}}; }

Json bench_block() {
  const BenchSpec defaults;
  return block(
      "krigtune-bench, one process a trial",
      {{"kind", word("who runs it: bench, simulate, replay, command, deepspeed or none", {"bench"})},
       {"warmup_s",
        with_default(at_least(number("seconds before the measurement"), 0), json_number(defaults.warmup_s))},
       {"measure_s", seconds("seconds of measurement", defaults.measure_s)},
       {"timeout_s", seconds("seconds after which a trial is ended", defaults.timeout_s)},
       {"launcher",
        with_default(word("ranks as threads of one process, or as processes under mpirun", {"threads", "mpirun"}),
                     "threads")},
       {"early_end", with_default(boolean("end a trial once its steps so far show that it is surely worse than "
                                          "the best (status bounded)"),
                                  defaults.early_end)},
       {"memory_limit_gib",
        above(number("GiB a rank that krigtune-bench allows itself (default: the session's limit)"), 0)}});
}

Json fraction_up_to_nine_tenths(const char* meaning, double fallback) {
  return with_default(at_most(at_least(number(meaning), 0), 0.9), json_number(fallback));
}

Json spread(const char* meaning, double fallback) {
  return with_default(at_most(at_least(number(meaning), 0), 2), json_number(fallback));
}

Json simulate_block() {
  const SimulateSpec defaults;
  return block(
      "Trials on the virtual clock, with hidden errors: takes no time, needs a named GPU",
      {{"kind", kind_is("simulate"), true},
       {"noise", spread("standard deviation of the logarithm of a step time, trial by trial", defaults.noise)},
       {"systematic_error",
        spread("likewise of the hidden factor of each class of operations", defaults.systematic_error)},
       {"memory_error", spread("likewise of the hidden factor on activations", defaults.memory_error)},
       {"stragglers",
        block("Slow ranks",
              {{"probability", fraction_up_to_nine_tenths("of a trial", defaults.straggler_probability)},
               {"slowdown", with_default(at_most(at_least(number("so many times as long takes a step"), 1), 100),
                                         json_number(defaults.straggler_slowdown))}})},
       {"failures",
        block("What no formula foresees",
              {{"unforeseen_fraction", fraction_up_to_nine_tenths("of the space: beyond a hidden plane all trials fail",
                                                                  defaults.unforeseen_fraction)},
               {"crash_probability", fraction_up_to_nine_tenths("of a trial, anywhere", defaults.crash_probability)}})},
       {"seed", with_default(at_least(integer("of all that is hidden and of the noise"), 0), defaults.seed)},
       {"early_end",
        with_default(boolean("end a trial that is surely worse than the best (status bounded)"), defaults.early_end)},
       {"today",
        block("The machine while a command runs; the next one may find it otherwise, and begins a new run",
              {{"slowdown", with_default(at_most(at_least(number("so many times as long takes every step"), 0.01), 100),
                                         json_number(defaults.today.slowdown))},
               {"seed", at_least(integer("of noise, stragglers and crashes (default: the seed of all)"), 0)}})}});
}

Json column(const char* meaning) {
  return either(meaning, {not_empty(text("the column's name")),
                          block("a column whose numbers are in another unit",
                                {{"column", not_empty(text("the column's name")), true},
                                 {"times", with_default(above(number("what makes our unit of its numbers"), 0), 1)}})});
}

Json replay_block() {
  return block(
      "A measured table answers",
      {{"kind", kind_is("replay"), true},
       {"table", not_empty(text("a CSV file, relative to the session")), true},
       {"where", map("picks rows: column, value", Json{{"type", {"number", "string", "boolean"}}})},
       {"columns", map("parameters whose column has another name or unit", column("the column"))},
       {"value", column("the column of the objective"), true},
       {"metrics", map("further results", column("the column"))},
       {"status", text("the column of the status (default: every row is ok)")},
       {"reason", text("the column of the reason of a failure")},
       {"repeats",
        with_default(word("what several rows of one configuration mean", {"best", "median", "cycle"}), "best")}});
}

Json command_block() {
  const CommandSpec defaults;
  return block(
      "A program of yours, one process a trial",
      {{"kind", kind_is("command"), true},
       {"argv", not_empty(list("program and arguments with {config}, {result}, {dir}, {trial}; no shell", text(""))),
        true},
       {"cwd", text("relative to the session (default: the session's directory)")},
       {"env", map("variables added to ours", Json{{"type", {"string", "number"}}})},
       {"timeout_s", seconds("seconds after which a trial is ended", defaults.timeout_s)},
       {"grace_s",
        with_default(at_least(number("seconds between SIGTERM and SIGKILL"), 0), json_number(defaults.grace_s))},
       {"no_progress_s", above(number("seconds without output after which it counts as hung (default: never)"), 0)},
       {"oom_exit_codes", list("exit codes that mean out of memory", at_most(at_least(integer(""), 1), 255))},
       {"oom_patterns",
        list("regular expressions (ECMAScript) in its output that mean out of memory", not_empty(text("")))}});
}

Json deepspeed_block() {
  const DeepSpeedSpec defaults;
  return block(
      "A DeepSpeed job of yours, one launch a trial, with a ds_config.json of its own",
      {{"kind", kind_is("deepspeed"), true},
       {"argv",
        not_empty(
            list("the command as you type it, with --deepspeed FILE or --deepspeed_config FILE; no shell", text(""))),
        true},
       {"ds_config", text("your ds_config.json, relative to the session (default: the file that the command names)")},
       {"cwd", text("relative to the session (default: the session's directory)")},
       {"env", map("variables added to ours", Json{{"type", {"string", "number"}}})},
       {"arg_mappings",
        map("flags of the script that must say what the file says: key of ds_config.json, flag", text("the flag"))},
       {"config_as",
        with_default(
            word("how the command gets a trial's configuration: the path of a file, or its text in base64, for "
                 "several nodes without a shared file system; no script that opens the file itself reads that",
                 {"path", "base64"}),
            "path")},
       {"warmup_steps", with_default(at_most(at_least(integer("optimizer steps before the measurement"), 1), 100000),
                                     defaults.steps.warmup)},
       {"measure_steps", with_default(at_most(at_least(integer("optimizer steps that are measured"), 3), 100000),
                                      defaults.steps.measured)},
       {"timeout_s", seconds("seconds after which a trial is ended", defaults.timeout_s)},
       {"grace_s",
        with_default(at_least(number("seconds between SIGTERM and SIGKILL"), 0), json_number(defaults.grace_s))},
       {"no_progress_s",
        seconds("seconds without a sign of life after which it counts as hung", defaults.no_progress_s)},
       {"early_end", with_default(boolean("end a trial once its steps so far show that it is surely worse than "
                                          "the best (status bounded)"),
                                  defaults.early_end)}});
}

Json none_block() {
  return block("Nobody: trials are run by hand, with krigtune ask and tell", {{"kind", kind_is("none"), true}});
}

Json when_kind(const char* kind, Json then) {
  Json condition = {{"properties", {{"kind", kind_is(kind)}}}, {"required", {"kind"}}};
  return {{"if", condition}, {"then", std::move(then)}};
}

}  // namespace

Json runner_block() {
  const std::vector<std::string> kinds = {"bench", "simulate", "replay", "command", "deepspeed", "none"};
  Json schema = {{"description", "Who runs a trial (default: bench with a workload, none without)"},
                 {"type", "object"},
                 {"properties", {{"kind", with_default(word("the kind", kinds), "bench")}}}};
  Json bench = {{"if", {{"properties", {{"kind", {{"enum", {"bench", nullptr}}}}}}}}, {"then", bench_block()}};
  schema["properties"]["kind"]["enum"].push_back(nullptr);
  schema["allOf"] = {bench,
                     when_kind("simulate", simulate_block()),
                     when_kind("replay", replay_block()),
                     when_kind("command", command_block()),
                     when_kind("deepspeed", deepspeed_block()),
                     when_kind("none", none_block())};
  return schema;
}

}  // namespace krigtune::schema
