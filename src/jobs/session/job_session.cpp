#include "jobs/session/job_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/processor.h"
#include "core/text.h"
#include "jobs/command/ranks.h"
#include "jobs/recipe/rewriting.h"
#include "jobs/session/job_advice.h"
#include "jobs/session/job_metric.h"
#include "jobs/session/job_paths.h"
#include "jobs/session/job_space.h"
#include "jobs/session/metric_unit.h"
#include "jobs/session/seen_facts.h"
#include "jobs/session/varied_command.h"
#include "space/parallel_layout.h"
#include "space/well_known.h"
#include "trial/failure_text.h"

namespace krigtune::jobs {
namespace {

constexpr const char* kValue = "value";  // name of the metric in the session

/// What is known about the job in addition to its session.
struct Machine {
  std::optional<std::int64_t> ranks;  ///< empty if neither the command nor this node determines them
  std::string missing_ranks;          ///< what would say them: "--nproc_per_node N"
  std::int64_t nodes = 1;
  Json cluster;
  std::string gpu;                 ///< the driver's name; "": none is seen that the job uses
  std::optional<double> rank_gib;  ///< memory of a rank's device
};

class SessionMaker {
 public:
  explicit SessionMaker(const JobRequest& request) : request_(request) {
    if (request_.command.empty()) {
      throw UserError("the command after -- is missing", fmt::format("{} --vary 'micro_batch=--mbs:1,2,4,8' --metric "
                                                                     "'tokens/s ([0-9.]+)' -- python train.py --mbs 4",
                                                                     request_.typed_as));
    }
    for (const std::string& text : request_.vary) varied_.push_back(read_vary(text));
    if (request_.metric) check_metric(*request_.metric);
    if (!request_.metric && request_.minimize) refuse_alone("--minimize");
    if (!request_.metric && request_.last_line) refuse_alone("--final");
    if (reports_steps() && request_.last_line) {
      throw UserError(fmt::format("--final cannot be combined with --metric {}", *request_.metric),
                      "leave it out, or give a regular expression for the printed number");
    }
    if (request_.last_line && (request_.warmup_steps || request_.measure_steps)) {
      throw UserError("--final cannot be combined with --warmup-steps or --measure-steps",
                      "leave one of them out: with --final the last line counts, and every trial runs to its end");
    }
    if (!request_.session.empty()) json_ = load_json(request_.session);
    if (!json_.is_object()) json_ = Json::object();  // read_session reports what is wrong with it
    words_.assign(request_.command.begin() + static_cast<std::ptrdiff_t>(leading_assignments(request_.command)),
                  request_.command.end());
  }

  WrittenSession make() {
    find_recipe_of_job();
    if (recipe_ == nullptr && varied_.empty() && !session_varies()) {
      refuse_unknown_job(request_.typed_as, request_.command, request_.metric.value_or(""));
    }
    look_at_machine();
    if (recipe_ != nullptr) {
      make_by_recipe();
    } else {
      make_by_options();
    }
    set_metric();
    std::string seen = json_.contains("workload") ? "" : add_what_is_seen();
    if (!json_.contains("cluster")) json_["cluster"] = machine_.cluster;
    const bool has_launcher = !read_command(words_).stages.empty();
    return {std::move(json_), std::move(remarks_), recipe_ != nullptr ? recipe_->notes : std::vector<std::string>(),
            has_launcher ? machine_.ranks : std::nullopt, std::move(seen)};
  }

  // Adds what is seen to a session whose runner is the command. Returns false if that is nothing.
  bool add_to(Json& session, std::vector<std::string>& lines) {
    json_ = session;
    look_at_machine();
    std::string seen = add_what_is_seen();
    const bool adds = !machine_.cluster.contains("ranks_assumed") || !machine_.gpu.empty() ||
                      (json_.contains("framework") && !session.contains("framework"));
    if (!adds) return false;
    if (!machine_.cluster.contains("ranks_assumed") || machine_.cluster.contains("gpu"))
      json_["cluster"] = machine_.cluster;
    session = std::move(json_);
    lines = std::move(remarks_);
    lines.push_back(std::move(seen));
    return true;
  }

 private:
  [[noreturn]] static void refuse_alone(const char* option) {
    throw UserError(fmt::format("{} needs --metric", option), "add --metric REGEX, or leave it out");
  }

  bool reports_steps() const { return request_.metric && is_reported_metric(*request_.metric); }
  bool session_varies() const { return json_.contains("space"); }

  // With both options a recipe is not needed, so it is only used if it is named.
  void find_recipe_of_job() {
    if (!request_.recipe.empty()) {
      named_recipe_ = find_recipe(request_.recipe);
      recipe_ = &*named_recipe_;
    } else if (varied_.empty() || !request_.metric) {
      recipe_ = recognise(words_, shipped_recipes());
    }
    if (recipe_ != nullptr && !recipe_->instead.empty()) {
      throw UserError(fmt::format("{}: a job of {}", job_name(request_.command), recipe_->summary),
                      fmt::format("tune it so: {}", recipe_->instead));
    }
    if (recipe_ != nullptr && (request_.warmup_steps || request_.measure_steps)) {
      Recipe with_steps = *recipe_;
      with_steps.warmup_steps = request_.warmup_steps.value_or(with_steps.warmup_steps);
      with_steps.measure_steps = request_.measure_steps.value_or(with_steps.measure_steps);
      named_recipe_ = std::move(with_steps);
      recipe_ = &*named_recipe_;
    }
  }

  // The words NAME=VALUE before the command.
  Variables assignments() const {
    Variables variables;
    for (std::size_t i = 0; i + words_.size() < request_.command.size(); ++i) {
      const std::string& word = request_.command[i];
      variables.emplace_back(word.substr(0, word.find('=')), word.substr(word.find('=') + 1));
    }
    return variables;
  }

  std::optional<std::string> assigned(const std::string& name) const {
    for (const auto& [variable, value] : assignments()) {
      if (variable == name) return value;
    }
    return std::nullopt;
  }

  std::string variable(const std::string& name) const {
    const std::optional<std::string> value = assigned(name);
    return value ? *value : request_.variable(name).value_or("");
  }

  void look_at_machine() {
    const workload::NodeGpus gpus = request_.find_gpus();
    Surroundings around;
    around.variable = [this](const char* name) { return variable(name); };
    around.directory = request_.directory;
    around.hostname = host_name();
    const std::optional<std::string> visible = assigned("CUDA_VISIBLE_DEVICES");
    around.gpus = visible ? listed_devices(*visible) : gpus.count;
    around.cpus = std::max(1U, std::thread::hardware_concurrency());
    const JobRanks found = ranks_around(read_command(words_), around);
    if (!found.assumption.empty()) remarks_.push_back(found.assumption);
    machine_.ranks = found.ranks;
    machine_.missing_ranks = found.missing;
    machine_.nodes = found.nodes.value_or(1);
    const std::int64_t ranks = found.ranks.value_or(machine_.nodes);
    if (ranks % machine_.nodes != 0) {
      throw UserError(fmt::format("the command starts {} on {}: not as many on each", counted(ranks, "rank"),
                                  counted(machine_.nodes, "node")),
                      "choose a multiple of the nodes");
    }
    machine_.cluster = Json::object();
    if (machine_.nodes > 1) machine_.cluster["nodes"] = machine_.nodes;
    machine_.cluster["gpus_per_node"] = ranks / machine_.nodes;
    if (gpus.count > 0 && found.has_this_node && trials_run_here()) look_at_gpus(gpus);
  }

  bool trials_run_here() const {
    const Json* block = json_.contains("executor") ? &json_["executor"] : nullptr;
    const std::string executor = !request_.executor.empty() ? request_.executor
                                 : block                    ? text_of_key(*block, "kind")
                                                            : "";
    return executor.empty() || executor == "local";
  }

  // Other nodes of the job are taken for nodes like this one.
  void look_at_gpus(const workload::NodeGpus& gpus) {
    machine_.gpu = gpus.name;
    if (gpus.memory_bytes > 0) machine_.rank_gib = to_gib(Bytes{gpus.memory_bytes});
    const auto id = workload::device_id_of(gpus.name, Bytes{gpus.memory_bytes});
    const std::optional<std::string> network = machine_.nodes > 1 ? request_.find_network() : std::nullopt;
    if (machine_.nodes > 1) remarks_.push_back(remark_on_nodes(gpus.name, id.value_or(""), network.value_or("")));
    if (!id || (machine_.nodes > 1 && !network)) return;
    machine_.cluster["gpu"] = *id;
    if (network) machine_.cluster["network"] = *network;
  }

  // Only of the machine and the command, because the session does not say what is trained. Returns what was seen.
  std::string add_what_is_seen() {
    const std::string framework = framework_named_by(
        {words_, request_.directory, [this](const std::string& name) { return variable(name); }}, recipe_);
    if (!json_.contains("framework") && !framework.empty()) json_["framework"] = framework;
    SeenFacts seen;
    seen.framework = text_of_key(json_, "framework");
    if (json_.contains("cluster")) return "";  // the user says it
    const Command command = read_command(words_);
    const Stage* stage = rank_stage(command);
    const bool may_start_more = stage != nullptr && stage->launcher == Launcher::kPython;
    const bool starts_more = machine_.ranks && may_start_more && splits_over_more(json_["space"], *machine_.ranks);
    if (!starts_more) seen.ranks = machine_.ranks;
    if (!seen.ranks) machine_.cluster["ranks_assumed"] = true;
    seen.missing_ranks = machine_.missing_ranks;
    seen.nodes = machine_.nodes;
    seen.is_in_table = machine_.cluster.contains("gpu");
    seen.gpu = seen.is_in_table ? machine_.cluster["gpu"].get<std::string>() : machine_.gpu;
    seen.network = machine_.cluster.value("network", "");
    seen.rank_gib = machine_.rank_gib;
    if (machine_.rank_gib && !seen.is_in_table && !json_.contains("memory"))
      json_["memory"]["limit_gib"] = *machine_.rank_gib;
    return seen_sentence(seen);
  }

  // The session's own cluster, if it states one.
  workload::ClusterSpec cluster() const {
    if (!json_.contains("cluster")) return workload::read_cluster(machine_.cluster, "this node", "");
    return workload::read_cluster(json_["cluster"], request_.session.string(), "/cluster", base_of(request_));
  }

  void make_by_options() {
    VariedCommand varied = vary_command(request_.command, varied_, around(), {names_of_session(), false});
    add_space(varied);
    Json block = runner_of_session();
    block["argv"] = varied.argv;
    if (request_.warmup_steps) block["warmup_steps"] = *request_.warmup_steps;
    if (request_.measure_steps) block["measure_steps"] = *request_.measure_steps;
    write_runner(std::move(block), varied);
    remark_on_other_names();
  }

  CommandSurroundings around() const {
    return {request_.directory, [this](const std::string& name) -> std::optional<std::string> {
              const std::string value = variable(name);
              return value.empty() ? std::nullopt : std::optional(value);
            }};
  }

  std::vector<std::string> names_of_session() const {
    std::vector<std::string> names;
    for (const char* key : {"space", "fixed"}) {
      if (!json_.contains(key) || !json_[key].is_object()) continue;
      for (const auto& [name, values] : json_[key].items()) names.push_back(name);
    }
    return names;
  }

  // The user's settings of the runner other than the command: time limits, measurements.
  Json runner_of_session() {
    Json block = {{"kind", "command"}};
    if (!json_.contains("runner")) return block;
    const bool is_command = runner::traits_of_block(json_["runner"]).starts_a_command;
    if (!is_command || json_["runner"].contains("argv")) {
      remarks_.push_back(fmt::format("{}: /runner{} is not used: trials run the command after --",
                                     request_.session.string(), is_command ? "/argv" : ""));
    }
    if (!is_command) return block;
    for (const auto& [key, value] : json_["runner"].items()) block[key] = value;
    return block;
  }

  void write_runner(Json block, const VariedCommand& varied) {
    block["cwd"] = request_.directory.string();
    for (const auto& [name, text] : varied.env) block["env"][name] = text;
    for (const auto& [name, words] : varied.flags.items()) block["flags"][name] = words;
    for (const auto& [file, keys] : varied.set.items()) {
      for (const auto& [key, text] : keys.items()) block["set"][file][key] = text;
    }
    json_["runner"] = std::move(block);
    remarks_.insert(remarks_.end(), varied.remarks.begin(), varied.remarks.end());
  }

  void add_space(const VariedCommand& varied) {
    for (const Vary& one : varied.varied) {
      if (one.values.is_null() && !(session_varies() && json_["space"].contains(one.name))) {
        throw UserError(fmt::format("--vary '{}': VALUES are missing", one.text),
                        fmt::format("write '{}:1,2,4', or a session with \"{}\" in its \"space\"", one.text, one.name));
      }
      if (!one.values.is_null()) json_["space"][one.name] = one.values;
    }
    if (json_.contains("baseline") && !json_["baseline"].is_object()) json_.erase("baseline");
    for (const auto& [name, value] : varied.own) json_["baseline"][name] = space::to_json(value);
    keep_batch(varied);
  }

  static std::optional<std::int64_t> count(const space::Configuration& own, const char* name) {
    const space::Value* value = own.find(name);
    return value == nullptr ? std::nullopt : space::integer_of(*value);
  }

  bool is_said(const VariedCommand& varied, const char* name) const {
    return std::none_of(varied.absent.begin(), varied.absent.end(),
                        [&](const auto& absent) { return absent == name; }) &&
           count(varied.own, name).has_value();
  }

  // Keeps the batch constant, because training would otherwise learn something else in each step.
  void keep_batch(const VariedCommand& varied) {
    const bool has_micro = varied.own.has(space::kMicroBatch);
    const bool has_steps = varied.own.has(space::kAccumulation);
    if (has_micro && !has_steps) {
      remarks_.push_back(fmt::format("the sequences of a step vary with micro_batch: to keep them, vary {} too",
                                     space::kAccumulation));
    }
    if (!is_said(varied, space::kMicroBatch) || !is_said(varied, space::kAccumulation)) return;
    const std::int64_t ranks = cluster().ranks();
    const std::int64_t dp = space::data_parallel_ranks(ranks, varied.own).value_or(ranks);
    const std::int64_t batch =
        space::sequences_of_step(*count(varied.own, space::kMicroBatch), dp, *count(varied.own, space::kAccumulation));
    if (configurations_at(json_["space"], batch, dp) < 2) {
      remarks_.push_back(
          fmt::format("the sequences of a step vary: micro_batch and {} have no two pairs of the same "
                      "product {}",
                      space::kAccumulation, batch / dp));
      return;
    }
    json_["constraints"].push_back(kept_batch(batch));
    remarks_.push_back(
        fmt::format("the {} of a step {} kept: \"constraints\" in a session, or other names "
                    "than micro_batch and {}, let them vary",
                    counted(batch, "sequence"), batch == 1 ? "is" : "are", space::kAccumulation));
  }

  void remark_on_other_names() {
    for (const Vary& one : varied_) {
      const std::string known(space::well_known_name(one.name));
      if (known.empty() || known == one.name) continue;
      remarks_.push_back(
          fmt::format("'{}' looks like {}: under that name krigtune knows what it usually does", one.name, known));
    }
  }

  void make_by_recipe() {
    const Recipe& recipe = *recipe_;
    RecipeJob job = read_job(recipe, {words_, request_.directory,
                                      [this](const std::string& name) { return variable(name); }, machine_.ranks});
    const OwnValues own = own_values(recipe, job);
    check_batch(own);
    guess_ranks(own.configuration);
    std::string why;
    if (!json_.contains("workload")) {
      Json workload = model_facts(recipe, job, &why);
      if (!workload.is_null()) {
        count_parameters(job.command, workload);
        json_["workload"] = std::move(workload);
      }
      if (!why.empty()) remarks_.push_back(fmt::format("the model is not known: {}", why));
    }
    const std::vector<std::string> varied = space_of_recipe(job, own);
    RunnerBlock runner = runner_block(recipe, job, varied);
    add_baseline(own.configuration);
    Json fixed = fixed_block(recipe, job, varied);
    for (const auto& [name, value] : fixed.items()) json_["fixed"][name] = value;
    const Json constraints = constraints_block(recipe, job, varied);
    for (const Json& constraint : constraints) json_["constraints"].push_back(constraint);
    write_recipe_runner(std::move(runner), varied);
    compare_steps(own, varied);
    if (json_.contains("workload") && machine_.rank_gib && !json_.contains("memory"))
      json_["memory"]["limit_gib"] = *machine_.rank_gib;
    remarks_.insert(remarks_.begin(), fmt::format("the recipe {}: {}", recipe.name, recipe.summary));
    remarks_.insert(remarks_.end(), own.remarks.begin(), own.remarks.end());
    if (json_.contains("workload")) return;  // it lists what is assumed
    for (const std::string& assumed : own.assumed) remarks_.push_back("assumed: " + assumed);
  }

  void count_parameters(const Command& command, Json& workload) {
    if (!request_.count_parameters) return;
    std::string said = request_.count_parameters({command, request_.directory, assignments()}, workload);
    if (!said.empty()) remarks_.push_back(std::move(said));
  }

  // A job that gets its batch as one number keeps it, but only a workload tells that to the session: without one, and
  // if neither tokens nor samples are printed, throughput would be that of micro_batch * dp sequences.
  void compare_steps(const OwnValues& own, const std::vector<std::string>& varied) {
    const bool is_kept = !recipe_->train_batch_size.places.empty() && own.train_batch_size.has_value() &&
                         !is_one_of(std::string_view(space::kAccumulation), varied);
    const bool is_printed = recipe_->measure.contains("tokens_per_s") || recipe_->measure.contains("samples_per_s");
    if (!is_kept || is_printed || json_.contains("workload") || json_.contains("objective")) return;
    json_["objective"] = {{"metric", "latency"}, {"direction", "minimize"}};
  }

  // The reader of the session would say only that no configuration is left.
  void check_batch(const OwnValues& own) const {
    if (!machine_.ranks || json_.contains("cluster")) return;
    const auto refuse = [&](const std::string& what) {
      throw UserError(fmt::format("{}: {}", job_name(request_.command), what), "correct the command");
    };
    const std::string ranks = counted(*machine_.ranks, "rank");
    const auto dp = space::data_parallel_ranks(*machine_.ranks, own.configuration);
    if (!dp) refuse("its tensor, pipeline and context parallelism does not divide the " + ranks);
    const std::int64_t parts = count(own.configuration, space::kExpertParallel).value_or(1);
    if (parts > *machine_.ranks) refuse(fmt::format("its {} parts of experts are more than the {}", parts, ranks));
    const std::optional<std::int64_t> micro = count(own.configuration, space::kMicroBatch);
    const bool is_open = !own.train_batch_size || own.configuration.has(space::kAccumulation);
    if (is_open || space::accumulation_steps(*own.train_batch_size, micro.value_or(1), *dp)) return;
    refuse(fmt::format("the batch of {} is not a multiple of {}{}", *own.train_batch_size,
                       micro ? fmt::format("micro-batch {} x ", *micro) : "", counted(*dp, "data-parallel rank")));
  }

  // If nobody knows the ranks, there are as many as one replica of the model needs.
  void guess_ranks(const space::Configuration& own) {
    if (machine_.ranks || json_.contains("cluster")) return;
    const std::int64_t replica = space::ranks_of_replica(own);
    if (replica > 1) machine_.cluster["gpus_per_node"] = replica;
    remarks_.push_back(
        fmt::format("how many ranks the command starts is not known: \"cluster\" has {} on a node; say them ({})",
                    replica, machine_.missing_ranks));
  }

  // Returns the parameters that the recipe writes, and puts their values into json_["space"].
  std::vector<std::string> space_of_recipe(const RecipeJob& job, const OwnValues& own) {
    std::vector<std::string> varied;
    if (session_varies() || !varied_.empty()) {
      for (const std::string& name : names_of_session()) {
        if (json_["space"].contains(name) && is_the_recipes(name, job)) varied.push_back(name);
      }
      for (const Vary& one : varied_) {
        if (!one.values.is_null()) json_["space"][one.name] = one.values;
        if (is_the_recipes(one.name, job) && !is_one_of(one.name, varied)) varied.push_back(one.name);
      }
      add_steps(job, own, varied);
      return varied;
    }
    JobSpace fitted = fitted_space(space_block(*recipe_, job, varied_by_default(*recipe_, job)), size_of(job, own));
    if (!fitted.without_effect.empty()) {
      remarks_.push_back(fmt::format("{} {} not varied: there is one data-parallel rank",
                                     join(fitted.without_effect, ", "),
                                     fitted.without_effect.size() == 1 ? "is" : "are"));
    }
    if (fitted.space.empty()) {
      throw UserError(fmt::format("{}: the recipe {} finds nothing to vary in this command", job_name(request_.command),
                                  recipe_->name),
                      "say what may vary: --vary 'NAME=FLAG:VALUES'");
    }
    for (const auto& [name, values] : fitted.space.items()) varied.push_back(name);
    json_["space"] = std::move(fitted.space);
    for (std::string& constraint : fitted.constraints) json_["constraints"].push_back(std::move(constraint));
    return varied;
  }

  // The job keeps its batch by the accumulation, which a session without a workload cannot derive.
  void add_steps(const RecipeJob& job, const OwnValues& own, std::vector<std::string>& varied) {
    const auto varies = [&](const char* name) { return is_one_of(std::string_view(name), varied); };
    const bool splits = std::ranges::any_of(space::rank_divisors(), varies);
    const bool moves = (splits || varies(space::kMicroBatch)) && !varies(space::kAccumulation);
    if (!moves || json_.contains("workload") || !own.train_batch_size || !own.configuration.has(space::kMicroBatch) ||
        !is_the_recipes(space::kAccumulation, job))
      return;
    json_["space"][space::kAccumulation] =
        steps_that_keep(*own.train_batch_size, json_["space"], own.configuration, cluster().ranks());
    json_["constraints"].push_back(kept_batch(*own.train_batch_size));
    varied.emplace_back(space::kAccumulation);
    remarks_.push_back(fmt::format("{} varies too, so that a step keeps its {}", space::kAccumulation,
                                   counted(*own.train_batch_size, "sequence")));
  }

  bool is_the_recipes(const std::string& name, const RecipeJob& job) const {
    const RecipeValue* value = recipe_->find(name);
    return value != nullptr && written_place(*value, job) != nullptr;
  }

  JobSize size_of(const RecipeJob& job, const OwnValues& own) const {
    const workload::ClusterSpec machine = cluster();
    JobSize size;
    size.ranks = machine.ranks();
    size.gpus_per_node = machine.gpus_per_node;
    size.train_batch_size = own.train_batch_size;
    size.own = own.configuration;
    size.can_write_accumulation = is_the_recipes(space::kAccumulation, job);
    if (!json_.contains("workload")) return size;
    const workload::Workload workload = workload::read_workload(json_["workload"], recipe_->name, "/workload");
    size.kv_heads = workload.model.kv_heads;
    size.layers = workload.model.layers;
    size.follows_batch = workload.train_batch_size.has_value();
    return size;
  }

  void add_baseline(const space::Configuration& own) {
    for (const auto& [name, value] : own) {
      if (json_["space"].contains(name)) json_["baseline"][name] = space::to_json(value);
    }
  }

  // Parameters of --vary that the recipe does not know are replaced in the words that it has written.
  void write_recipe_runner(RunnerBlock runner, const std::vector<std::string>& written) {
    std::vector<Vary> others;
    for (const Vary& one : varied_) {
      if (!is_one_of(one.name, written)) others.push_back(one);
    }
    const auto program =
        request_.command.begin() + static_cast<std::ptrdiff_t>(request_.command.size() - words_.size());
    std::vector<std::string> words(request_.command.begin(), program);  // words NAME=value
    for (const Json& word : runner.block["argv"]) words.push_back(word.get<std::string>());
    const VariedCommand varied = vary_command(words, others, around(), {{}, true});
    Json block = runner_of_session();
    for (const auto& [key, value] : runner.block.items())
      block[key] = key == "set" ? named_from_session(request_, value) : value;
    block["argv"] = varied.argv;
    const VariedCommand own = vary_command(request_.command, others, around());
    block["command"] = Json::array();
    for (const auto& [name, text] : own.env) block["command"].push_back(name + "=" + text);
    for (const std::string& word : own.argv) block["command"].push_back(word);
    if (named_recipe_ && request_.recipe != named_recipe_->name)
      block["recipe"] = (request_.directory / request_.recipe).lexically_normal().string();
    for (const auto& [name, value] : varied.own) json_["baseline"][name] = space::to_json(value);
    write_runner(std::move(block), varied);
    remarks_.insert(remarks_.end(), runner.remarks.begin(), runner.remarks.end());
  }

  // A number beside the objective. Memory is rarely printed in bytes, so the unit behind the number counts.
  void add_measure(const std::string& text) {
    const trial::Measure measure = trial::measure_from_text(text, "--measure");
    Json measured = {{"regex", measure.pattern}};
    const std::string unit = unit_in(measure.pattern);
    if (!trial::unit_of_measure(measure.name).empty() && trial::is_unit(unit)) measured["times"] = unit;
    if (measure.name == trial::kPeakMemory && unit.empty()) {
      remarks_.push_back(
          fmt::format("--measure {}: the number is taken for bytes; write the unit that is printed behind "
                      "it, as in '{}=mem ([0-9.]+) GiB'",
                      measure.name, measure.name));
    }
    json_["runner"]["measure"][measure.name] = std::move(measured);
  }

  void set_metric() {
    Json& runner = json_["runner"];
    if (reports_steps()) measure_reported_steps(runner);
    for (const std::string& text : request_.measure) add_measure(text);
    if (reports_steps()) {
      json_["objective"] = {{"metric", *request_.metric}};
      if (request_.minimize) json_["objective"]["direction"] = "minimize";
      return;
    }
    if (request_.metric) {
      Json measured = {{"regex", *request_.metric}};
      if (request_.last_line) measured["kind"] = "final";
      runner["measure"][kValue] = std::move(measured);
      json_["objective"] = {{"metric", kValue}, {"direction", request_.minimize ? "minimize" : "maximize"}};
      if (const std::string unit = unit_in(*request_.metric); !unit.empty()) json_["objective"]["unit"] = unit;
      return;
    }
    const bool is_measured = runner.contains("measure") && !runner["measure"].empty();
    const bool writes_result = runner.dump().find("{result}") != std::string::npos;
    if (is_measured || writes_result) return;
    throw UserError(fmt::format("{}: which printed number counts is not known", job_name(request_.command)),
                    fmt::format("add --metric with the text before it: {}",
                                example_line(request_.typed_as, request_.command, request_.vary, "")));
  }

  const JobRequest& request_;
  std::vector<std::string> words_;  ///< the command from the program on
  std::vector<Vary> varied_;
  std::optional<Recipe> named_recipe_;
  const Recipe* recipe_ = nullptr;
  Machine machine_;
  Json json_;
  std::vector<std::string> remarks_;
};

}  // namespace

WrittenSession written_session(const JobRequest& request) { return SessionMaker(request).make(); }

bool add_seen_facts(Json& session, const JobRequest& surroundings, std::vector<std::string>& lines) {
  const JobRequest request = request_of_session(session, surroundings);
  try {
    return !request.command.empty() && SessionMaker(request).add_to(session, lines);
  } catch (const UserError&) {  // a hostfile that cannot be read: nothing is seen, and the trials say what is wrong
    return false;
  }
}

JobSession session_of_job(const JobRequest& request) {
  WrittenSession written = written_session(request);
  const bool is_own = !request.session.empty();
  const std::string source = is_own ? request.session.string() : "the session of " + job_name(request.command);
  session::Session session = session::read_session(written.json, source, base_of(request));
  session.file = is_own ? request.session : job_file(request.command);
  if (is_own && written.ranks && *written.ranks != session.cluster.ranks()) {
    throw UserError(fmt::format("{}: /cluster: {}, but the command starts {}", source,
                                counted(session.cluster.ranks(), "rank"), *written.ranks),
                    "change one of them, or leave \"cluster\" out");
  }
  if (!written.seen.empty() && predicts_steps(session)) written.remarks.push_back(written.seen);
  return {std::move(written.json), std::move(session), std::move(written.remarks), std::move(written.notes)};
}

}  // namespace krigtune::jobs
