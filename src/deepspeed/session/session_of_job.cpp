#include "deepspeed/session/session_of_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "core/environment.h"
#include "core/error.h"
#include "core/files.h"
#include "core/processor.h"
#include "core/text.h"
#include "deepspeed/job/ds_config.h"
#include "deepspeed/job/ds_probe.h"
#include "deepspeed/session/ds_job.h"
#include "deepspeed/session/ds_questions.h"
#include "jobs/command/ranks.h"

namespace krigtune::deepspeed {
namespace {

constexpr const char* kLocal = "local";
constexpr const char* kUnknownRanks = "the command does not say how many ranks it starts, nor does this machine";

// The job as described by file, command and machine.
struct KnownJob {
  DsSessionInputs inputs;
  std::string missing_ranks;  ///< if the number of ranks is unknown: what the command would have to state
  bool is_guess = false;      ///< the launcher is unknown, so its ranks are assumed to be this node's GPUs
  std::vector<std::string> remarks;
};

std::string variable_or_empty(const std::string& name) { return environment_variable(name).value_or(""); }

std::string gpu_id(const NodeGpus& gpus) {
  return gpus.count == 0 ? kLocal : workload::device_id_of(gpus.name, Bytes{gpus.memory_bytes}).value_or(kLocal);
}

jobs::Surroundings surroundings_of(const NodeGpus& gpus) {
  jobs::Surroundings around;
  around.variable = variable_or_empty;
  around.directory = std::filesystem::current_path();
  around.hostname = host_name();
  around.gpus = gpus.count;
  around.cpus = std::max(1U, std::thread::hardware_concurrency());
  return around;
}

// DeepSpeed computes on the GPUs that it sees. Without one its ranks are on the CPU: two, unless stated otherwise.
void describe_node(const NodeGpus& gpus, bool is_elsewhere, DsMachine& machine) {
  constexpr int kCpuRanks = 2;
  machine.on_cpu = gpus.count == 0 && !is_elsewhere;
  const std::int64_t ranks = gpus.count > 0 ? gpus.count : kCpuRanks;
  machine.cluster = workload::read_cluster({{"gpus_per_node", ranks}, {"gpu", gpu_id(gpus)}}, "this node", "");
  if (gpus.count == 0) return;
  if (gpus.memory_bytes > 0) machine.rank_memory = Bytes{gpus.memory_bytes};
  workload::ClusterSpec node;
  node.gpus_per_node = machine.cluster.gpus_per_node;
  machine.host_memory = Bytes{workload::memory_limit_per_rank({}, node).count * node.gpus_per_node};
}

std::string remark_on_other_nodes(const DsMachine& machine) {
  if (machine.rank_memory) {
    return fmt::format(
        "the job's nodes are taken for nodes like this one, {} a GPU; \"cluster\" and \"memory\" in a "
        "session say otherwise",
        to_string(*machine.rank_memory));
  }
  return "this node has no GPU, so the memory of the job's GPUs is unknown; write it as \"memory\": {\"limit_gib\": "
         "...} "
         "in a session (krigtune init --deepspeed)";
}

// There is no usual network between nodes, so a predicted time would be a guess.
void leave_unnamed(KnownJob& job) {
  workload::ClusterSpec& cluster = job.inputs.machine.cluster;
  if (cluster.is_local()) return;
  workload::ClusterSpec unnamed;
  unnamed.gpus_per_node = cluster.gpus_per_node;
  cluster = unnamed;
  job.remarks.emplace_back(
      "time is not predicted: the network between the nodes is not known; write \"gpu\" and \"network\" in "
      "\"cluster\" of a session, as h100-80gb and ib-ndr-400");
}

// Looks at this node and the environment, and completes the ranks and nodes of the command, if there is one.
void find_machine(const std::function<NodeGpus()>& find_gpus, const Clock& clock, KnownJob& job) {
  const bool on_cpu = variable_or_empty("DS_ACCELERATOR") == "cpu";
  const NodeGpus gpus = on_cpu ? NodeGpus{} : find_gpus();
  DsMachine& machine = job.inputs.machine;
  if (!job.inputs.command) {
    describe_node(gpus, false, machine);
    return;
  }
  DsCommand& command = *job.inputs.command;
  const jobs::Surroundings around = surroundings_of(gpus);
  const jobs::JobRanks found = jobs::ranks_around(command, around);
  command.ranks = found.ranks;
  command.nodes = found.nodes;
  job.missing_ranks = found.missing;
  if (!found.assumption.empty()) job.remarks.push_back(found.assumption);
  job.is_guess = command.stages.empty();
  if (job.is_guess && found.ranks) {
    job.remarks.push_back(
        fmt::format("the command's launcher is not known: its ranks are taken for the {} GPUs of "
                    "this node; \"cluster\" in a session says otherwise",
                    *found.ranks));
  }
  describe_node(gpus, found.is_elsewhere && !on_cpu, machine);
  if (found.is_elsewhere && !on_cpu) job.remarks.push_back(remark_on_other_nodes(machine));
  if (found.nodes.value_or(1) > 1) leave_unnamed(job);
  machine.version = installed_version(command, around.directory, clock);
}

// With two different files, one would be searched and the other used for training.
void check_same_file(const DsCommand& command, const std::filesystem::path& ds_config) {
  std::error_code error;
  const std::filesystem::path named = std::filesystem::weakly_canonical(command.config, error);
  if (named == std::filesystem::weakly_canonical(ds_config, error)) return;
  throw UserError(fmt::format("--deepspeed: the command names '{}', not '{}'", command.config, ds_config.string()),
                  "name the same file in both");
}

KnownJob known_job(const JobRequest& request, const Clock& clock) {
  KnownJob job;
  DsSessionInputs& inputs = job.inputs;
  inputs.ds_config = request.ds_config;
  inputs.config = load_ds_config(inputs.ds_config);
  inputs.directory = std::filesystem::current_path();
  if (!request.command.empty()) {
    inputs.command = read_ds_command(request.command);
    check_same_file(*inputs.command, inputs.ds_config);
  }
  if (request.hf_config) {
    read_text(*request.hf_config);  // throws if the named file does not exist
    inputs.model.hf_config = *request.hf_config;
  }
  inputs.tensor_parallel = request.tensor_parallel;
  find_machine(request.find_gpus, clock, job);
  return job;
}

// Makes the session once, and again only if the job's answers differ from what was assumed.
DsSession made_session(const JobRequest& request, const Clock& clock, KnownJob& job) {
  DsSessionInputs& inputs = job.inputs;
  std::vector<std::string> remarks;
  if (!job.missing_ranks.empty()) {
    remarks.push_back(
        fmt::format("{}: \"cluster\" below is a guess; correct it, or add {} to it", kUnknownRanks, job.missing_ranks));
  }
  remarks.insert(remarks.end(), job.remarks.begin(), job.remarks.end());
  if (inputs.command && !DsJob(inputs).num_params) {
    DsModelFacts model = ask_for_model(inputs, request, clock, remarks);
    model.hf_config = inputs.model.hf_config;
    inputs.model = std::move(model);
  }
  DsSession made = deepspeed_session(inputs);
  if (inputs.tensor_parallel && !splits_tensors(inputs, made, request, clock, remarks)) {
    inputs.tensor_parallel = false;
    made = deepspeed_session(inputs);
  }
  if (request.count_parameters && inputs.command && made.json.contains("workload")) {
    const std::string said = request.count_parameters({*inputs.command, inputs.directory}, made.json["workload"]);
    if (!said.empty()) remarks.push_back(said);
  }
  made.remarks.insert(made.remarks.begin(), remarks.begin(), remarks.end());
  return made;
}

// The user's own session, run by the command. That file contains the assumptions made when it was written.
Json with_command(const std::filesystem::path& file, KnownJob& job) {
  Json json = load_json(file);
  if (json.is_object() && json.contains("cluster")) {
    job.inputs.machine.cluster = workload::read_cluster(json["cluster"], file.string(), "/cluster", file.parent_path());
  }
  if (job.is_guess) job.inputs.command->ranks = job.inputs.command->nodes = std::nullopt;
  json["runner"] = deepspeed_session(job.inputs).json["runner"];
  return json;
}

// A session may have been written for another number of ranks. If the command states none, the session counts.
void check_ranks(const KnownJob& job, const session::Session& session) {
  const std::optional<std::int64_t> ranks = job.is_guess ? std::nullopt : job.inputs.command->ranks;
  if (!ranks || *ranks == session.cluster.ranks()) return;
  throw UserError(fmt::format("{}: /cluster: {}, but the command starts {}", session.file.string(),
                              counted(session.cluster.ranks(), "rank"), *ranks),
                  "fix one of them, or write another session with krigtune init --deepspeed");
}

JobSession read_as(const std::string& source, const std::filesystem::path& file, DsSession made) {
  JobSession result;
  result.session = session::read_session(made.json, source, std::filesystem::absolute(file).parent_path());
  result.session.file = file;
  result.json = std::move(made.json);
  result.remarks = std::move(made.remarks);
  return result;
}

JobSession session_from_file(const JobRequest& request, KnownJob& job) {
  if (request.tensor_parallel) {
    throw UserError("--tensor-parallel: the session says what is searched",
                    "write \"tensor_parallel\": [1, 2] into its \"space\"");
  }
  JobSession result = read_as(request.session.string(), request.session, {with_command(request.session, job), {}, {}});
  check_ranks(job, result.session);
  return result;
}

}  // namespace

JobSession session_of_job(const JobRequest& request, const Clock& clock) {
  KnownJob job = known_job(request, clock);
  if (!request.session.empty()) return session_from_file(request, job);
  if (!job.missing_ranks.empty() && !request.may_guess_ranks) {
    throw UserError(kUnknownRanks, fmt::format("add {} to it, or write a session with krigtune init --deepspeed and "
                                               "fix its \"cluster\"",
                                               job.missing_ranks));
  }
  return read_as("the session of " + request.ds_config.string(), request.ds_config, made_session(request, clock, job));
}

}  // namespace krigtune::deepspeed
