// krigtune init: writes a commented session for this machine without asking questions. The meanings of its lines come
// from the schema, the defaults from the resolved session, so that neither is written twice.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ostream>
#include <string_view>

#include "core/columns.h"
#include "core/error.h"
#include "core/files.h"
#include "core/text.h"
#include "engine/gpu_probe.h"
#include "plan/build_plan.h"
#include "programs/krigtune/deepspeed_options.h"
#include "programs/krigtune/doctor.h"
#include "programs/krigtune/document.h"
#include "programs/krigtune/inferred_session.h"
#include "programs/krigtune/job_options.h"
#include "report/job_text.h"
#include "session/session_schema.h"
#include "space/well_known.h"

namespace krigtune::cli {
namespace {

constexpr const char* kModelRun = "model-run";
constexpr const char* kFrom = "from";
constexpr const char* kDefaultFile = "session.json";

void declare_init(boost::program_options::options_description& options) {
  declare_job(options);
  declare_deepspeed(options);
  options.add_options()(kModelRun,
                        "with --deepspeed and a command: launch it once to find the size of its model, if neither its "
                        "flags nor --hf-config give it");
  declare_no_model_run(options);
  options.add_options()(kFrom, typed_value_named("DIR"),
                        "write the session of the run in DIR, with what its trials say about the job");
  options.add_options()("schema", "print the JSON Schema of the session file, for editors, and write nothing");
}

// The parameters that matter most on one machine. The accumulation follows from the batch size, which is kept.
constexpr std::array<std::string_view, 7> kVaried = {space::kZeroStage,       space::kMicroBatch, space::kReduceBucket,
                                                     space::kAllgatherBucket, space::kOverlap,    space::kCheckpointing,
                                                     space::kOffloadOptimizer};

// Returns the default range, or the part of it that krigtune-bench can run.
Json range_of(const space::WellKnownParameter& parameter) {
  Json range = parse_json(parameter.default_range, parameter.name);
  if (parameter.name != std::string_view(space::kOffloadOptimizer)) return range;
  return Json::array({"none", "cpu"});
}

// The keys that are not commented out, with a model of which two CPU cores train a step in tens of milliseconds.
Json essentials(int ranks) {
  Json space = Json::object();
  for (const space::WellKnownParameter& parameter : space::well_known_parameters()) {
    if (std::find(kVaried.begin(), kVaried.end(), parameter.name) != kVaried.end()) {
      space[parameter.name] = range_of(parameter);
    }
  }
  return {{"workload",
           {{"model", {{"layers", 4}, {"hidden", 256}, {"heads", 8}, {"vocab", 1024}, {"seq_len", 16}}},
            {"precision", "fp32"},
            {"optimizer", "adamw"},
            {"train_batch_size", 8 * ranks}}},
          {"cluster", {{"gpus_per_node", ranks}, {"gpu", "local"}}},
          {"space", space},
          {"runner", {{"kind", "bench"}, {"warmup_s", 0.3}, {"measure_s", 1.5}, {"timeout_s", 60}}},
          {"budget", {{"trials", 20}}}};
}

// Returns the part of the schema that describes `key` of this object, in whichever alternative it is.
const Json* part_of(const Json& schema, const std::string& key) {
  if (schema.contains("properties") && schema["properties"].contains(key)) return &schema["properties"][key];
  for (const char* shapes : {"anyOf", "allOf"}) {
    if (!schema.contains(shapes)) continue;
    for (const Json& shape : schema[shapes]) {
      if (const Json* part = part_of(shape.contains("then") ? shape["then"] : shape, key)) return part;
    }
  }
  return nullptr;
}

std::string meaning_of(const Json* schema) {
  return schema != nullptr && schema->contains("description") ? (*schema)["description"].get<std::string>() : "";
}

std::string spaced_line(const Json& value) {
  std::string text;
  for (const char c : value.dump()) text += c == ',' || c == ':' ? std::string(1, c) + " " : std::string(1, c);
  return text;
}

/// Writes blocks line by line. Lines that are not essential are commented out.
class Writer {
 public:
  void comment(const std::string& text) { lines_ += fmt::format("{:{}}// {}\n", "", indent_, text); }
  void blank() { lines_ += "\n"; }

  // `essential`: nullptr if the whole block has its defaults.
  void block(const std::string& key, const Json& values, const Json* essential, const Json* schema) {
    const bool active = essential != nullptr;
    line(active, fmt::format("\"{}\": {{", key));
    indent_ += 2;
    for (const auto& [name, value] : values.items()) {
      const Json* given = active && essential->contains(name) ? &essential->at(name) : nullptr;
      const Json* part = schema == nullptr ? nullptr : part_of(*schema, name);
      if (value.is_object() && !value.empty()) {
        block(name, value, given, part);
      } else {
        leaf(name, value, given != nullptr, meaning_of(part));
      }
    }
    indent_ -= 2;
    line(active, "},");
  }

  void leaf(const std::string& key, const Json& value, bool active, const std::string& meaning) {
    line(active, fmt::format("\"{}\": {},{}", key, spaced_line(value), meaning.empty() ? "" : "  // " + meaning));
  }

  void append(const std::string& lines) { lines_ += lines; }
  const std::string& lines() const { return lines_; }

 private:
  void line(bool active, const std::string& text) {
    lines_ += fmt::format("{:{}}{}{}\n", "", indent_, active ? "" : "// ", text);
  }

  std::string lines_;
  std::size_t indent_ = 2;
};

// Writes names as comments of at most 120 columns.
std::string names_as_comments(const std::string& before, const std::vector<std::string>& names) {
  constexpr std::size_t kWidth = 120;
  const std::string indent = "    // ";
  std::string text;
  std::string line = indent + before;
  for (const std::string& name : names) {
    if (line.size() + name.size() + 1 > kWidth) {
      text += line + "\n";
      line = indent + " ";
    }
    line += " " + name;
  }
  return text + line + "\n";
}

std::string space_text(const Json& space) {
  std::string text = "  \"space\": {\n";
  std::vector<std::string> others;
  for (const space::WellKnownParameter& parameter : space::well_known_parameters()) {
    if (!space.contains(parameter.name)) {
      others.emplace_back(parameter.name);
      continue;
    }
    const std::string unit = *parameter.unit == '\0' ? "" : fmt::format(" ({})", parameter.unit);
    text +=
        fmt::format("    // {}{}\n    \"{}\": {},\n", parameter.meaning, unit, parameter.name,
                    space[parameter.name].is_array() ? spaced_line(space[parameter.name]) : parameter.default_range);
  }
  return text + names_as_comments("also known:", others) + "  },\n";
}

std::string session_text(const Context& context, int gpus) {
  const int ranks = std::max(gpus, 2);
  const Json essential = essentials(ranks);
  Json values = session::resolved(session::read_session(essential, "init", "."));
  values["baseline"].erase(space::kAccumulation);
  const Json schema = session::session_schema();
  Writer writer;
  for (const auto& [key, value] : values.items()) {
    const Json& part = schema["properties"][key];
    writer.blank();
    writer.comment(meaning_of(&part));
    if (key == "space") {
      writer.append(space_text(essential["space"]));
    } else if (value.is_object()) {
      writer.block(key, value, essential.contains(key) ? &essential[key] : nullptr, &part);
    } else {
      writer.leaf(key, value, essential.contains(key), "");
    }
  }
  const std::string why = engine::no_cuda_reason(runner::find_bench(context.console.program));
  const std::string unused = why.empty() ? "" : ", not used: " + why;
  const std::string found = gpus > 0 ? fmt::format("{} found{}", counted(gpus, "GPU"), unused) : "no GPU found";
  return fmt::format(
      "// To tune a command of your own, begin with: krigtune init -- COMMAND..., as in\n//   krigtune init -- "
      "torchrun --nproc_per_node 8 train.py --micro-batch-size 4\n// This session trains a small model of krigtune's "
      "own on {} CPU ranks of this machine ({}), to try krigtune out.\n// krigtune plan FILE shows what fits in "
      "memory, krigtune tune FILE finds the fastest configuration. Lines after //\n// show the default of each key; "
      "docs/session.md explains all keys.\n{{\n  // \"$schema\": \"session.schema.json\",  // for editors: krigtune "
      "init --schema > session.schema.json\n{}}}\n",
      ranks, found, writer.lines());
}

void refuse_to_overwrite(const std::filesystem::path& file) {
  std::error_code error;
  if (std::filesystem::symlink_status(file, error).type() != std::filesystem::file_type::not_found) {
    throw UserError(fmt::format("init: '{}' exists already", file.string()),
                    "move it away, or name another file: krigtune init OTHER.json");
  }
  const std::filesystem::path directory = std::filesystem::absolute(file).parent_path();
  if (!std::filesystem::is_directory(directory, error)) {
    throw UserError(fmt::format("init: there is no directory '{}'", directory.string()), "create it first");
  }
}

deepspeed::JobLaunches model_run(const Context& context) {
  if (context.arguments.flag(kModelRun) && context.arguments.flag(kNoModelRun)) {
    throw UserError(fmt::format("--{} and --{} cannot be combined", kModelRun, kNoModelRun), "leave one of them out");
  }
  return context.arguments.flag(kModelRun) ? deepspeed::JobLaunches::kAsNeeded : deepspeed::JobLaunches::kNone;
}

// Returns whether no job is given.
bool is_own_model(const Context& context) {
  return ds_config_of(context.arguments).empty() && context.arguments.users_command().empty();
}

std::string text_of(const Context& context, const std::filesystem::path& file, int gpus) {
  const bool is_deepspeed = !ds_config_of(context.arguments).empty();
  const bool is_job = !is_deepspeed && !is_own_model(context);
  if (!is_deepspeed) refuse_deepspeed_options(context);
  if (is_job) return job_session_text(context, file);
  refuse_job_options(context);
  return is_deepspeed ? deepspeed_session_text(context, model_run(context)) : session_text(context, gpus);
}

int print_schema(const Context& context) {
  const std::string& operand = context.arguments.operand();
  if (!operand.empty()) throw UserError("init: --schema writes no file", "leave '" + operand + "' out");
  context.console.out << session::session_schema().dump(2) << '\n';
  return ExitCode::kDone;
}

int init_from_run(const Context& context, const std::string& directory, const std::filesystem::path& file) {
  if (!is_own_model(context)) {
    throw UserError("init: --from takes the job from the run", "leave out the command, or --from");
  }
  refuse_deepspeed_options(context);
  refuse_job_options(context);
  const InferredSession session = inferred_session(context, directory, file);
  if (session.may_hold_a_secret) {
    write_private(file, session.text);
  } else {
    write_atomically(file, session.text);
  }
  if (!session.remark.empty()) context.log.progress(wrapped_lines(session.remark, context.log.width(), 2));
  for (const std::string& warning : session.warnings) context.log.warning(warning);
  const std::vector<std::string> next = {context.console.typed_as, "tune", file.string(), "--warm-start", directory};
  if (context.arguments.flag("json")) {
    Json json = new_document("init");
    json["file"] = file.string();
    json["from"] = directory;
    json["inferred"] = session.inferred;
    json["job"] = report::job_json(session.job);
    print(context, json);
  } else {
    context.console.out << fmt::format("{}: written; next: {}\n", file.string(), shell_line(next));
  }
  return ExitCode::kDone;
}

int init(const Context& context) {
  const std::string& operand = context.arguments.operand();
  if (context.arguments.flag("schema")) return print_schema(context);
  const std::filesystem::path file = operand.empty() ? kDefaultFile : operand;
  refuse_to_overwrite(file);
  if (const auto directory = context.arguments.text(kFrom)) return init_from_run(context, *directory, file);
  const int gpus = count_gpus();
  write_atomically(file, text_of(context, file, gpus));
  if (context.arguments.flag("json")) {
    Json json = new_document("init");
    json["file"] = file.string();
    json["gpus"] = gpus;
    print(context, json);
  } else {
    const std::vector<std::string> next = {context.console.typed_as, "plan", file.string()};
    context.console.out << fmt::format("{}: written; next: {}\n", file.string(), shell_line(next));
    if (is_own_model(context)) {
      context.console.out << fmt::format(
          "it trains a small model of krigtune's own; to tune your own command: {} init -- COMMAND...\n",
          context.console.typed_as);
    }
  }
  return ExitCode::kDone;
}

}  // namespace

Command init_command() {
  return {
      "init",
      "[SESSION]",
      "Writes a commented session file (default: session.json)",
      "With -- COMMAND... the session tunes that command, as krigtune tune -- COMMAND... would, with "
      "--deepspeed FILE [-- COMMAND...] that DeepSpeed job. Without a command it trains a small model on this "
      "machine, on as many CPU ranks as there are GPUs, or on two. All other keys of a session are in the file as "
      "comments, with their defaults. With --from DIR the file is the session of the run in DIR. If that does not "
      "describe the job, or its trials contradict it, the likeliest workload is written too, marked as inferred and "
      "with its probability. An existing file is not overwritten.",
      declare_init,
      init,
      kDeepSpeedOption,
      {},
      {"recipe", "final", "warmup-steps", "measure-steps", "hf-config", kModelRun, kNoModelRun}};
}

}  // namespace krigtune::cli
