// krigtune init --from: the session of a run, with the likeliest answers to what it does not say about its job.
// Whatever was inferred is marked by a comment that states its probability.
#include "programs/krigtune/inferred_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "core/columns.h"
#include "core/error.h"
#include "core/json.h"
#include "core/text.h"
#include "forecast/hypotheses.h"
#include "programs/krigtune/session_state.h"
#include "run/prepared.h"
#include "run/run_directory.h"
#include "search/model/job_words.h"
#include "search/model/trial_model.h"
#include "space/well_known.h"
#include "workload/workload.h"

namespace krigtune::cli {
namespace {

using search::JobAspect;

constexpr const char* kHowTo = "describe the job yourself: docs/howto/unknown_model.md";
constexpr std::size_t kCommentWidth = 116;

/// What a run says about its job.
struct RunBelief {
  search::JobSummary summary;
  std::size_t likeliest = 0;   ///< the likeliest job with a model of the likeliest size
  double probability = 0.0;    ///< of this job
  forecast::Roles roles = {};  ///< its meaning of the parameters, where their names do not say it
};

double parameters_of(const workload::Workload& job) {
  return static_cast<double>(workload::parameter_count(job.model));
}

// Sets the likeliest of the jobs whose model has the likeliest size. The likeliest of all may have another size, where
// many jobs share the probability of a size.
void set_likeliest_job(const forecast::Hypotheses& hypotheses, const Eigen::VectorXd& probabilities,
                       RunBelief& belief) {
  std::vector<double> of_jobs(hypotheses.jobs(), 0.0);
  for (std::size_t h = 0; h < hypotheses.all().size(); ++h) {
    if (const auto job = hypotheses.all()[h].job) of_jobs[*job] += probabilities(static_cast<Eigen::Index>(h));
  }
  const search::JobQuestion* sizes = belief.summary.find(JobAspect::kParameters);
  for (std::size_t job = 0; job < of_jobs.size(); ++job) {
    if (sizes != nullptr && parameters_of(hypotheses.workload(job)) != search::likeliest(*sizes).number) continue;
    if (of_jobs[job] <= belief.probability) continue;
    belief.likeliest = job;
    belief.probability = of_jobs[job];
  }
}

UserError looks_like_no_step(const LoadedRun& run, const std::string& probability) {
  return UserError(fmt::format("init: nothing was inferred from {}: its trials look like no training step that the "
                               "models know ({} likely)",
                               run.directory.string(), probability),
                   kHowTo);
}

// Failures alone say little of a job, and a workload of an unknown size would only mislead.
void refuse_what_is_not_clear(const RunBelief& belief, const LoadedRun& run) {
  constexpr double kClear = 1.0 / 3.0;
  const std::string name = run.directory.string();
  const bool has_success = std::any_of(run.history.begin(), run.history.end(), [&](const journal::Trial& trial) {
    return search::value_of(trial, run.session().objective).has_value();
  });
  if (!has_success) {
    throw UserError(fmt::format("init: nothing can be inferred from {}: none of its trials succeeded", name),
                    fmt::format("run more first: krigtune tune {} --trials N", name));
  }
  if (!search::is_known_step(belief.summary))
    throw looks_like_no_step(run, search::job_probability_text(belief.summary.no_step));
  const search::JobQuestion* sizes = belief.summary.find(JobAspect::kParameters);
  if (sizes != nullptr && search::likeliest(*sizes).probability < kClear) {
    throw UserError(fmt::format("init: the size of the model is not clear from {} yet: {}", name,
                                search::job_sentence(belief.summary)),
                    fmt::format("run more trials: krigtune tune {} --trials N", name));
  }
}

RunBelief belief_of(const LoadedRun& run) {
  const search::Candidates& candidates = run.prepared.candidates;
  const forecast::Hypotheses* hypotheses = candidates.hypotheses();
  if (hypotheses == nullptr) {
    throw UserError(fmt::format("init: nothing can be inferred from {}: its objective is not the speed of a training "
                                "step, or {}",
                                run.directory.string(),
                                run.session().workload ? "the models do not know its workload"
                                                       : "no name of its parameters speaks of one"),
                    kHowTo);
  }
  const search::TrialModel model(run.session().objective, candidates, run.history);
  if (model.job() == nullptr) throw looks_like_no_step(run, "more than 50 %");
  RunBelief belief;
  belief.summary = search::summary_of(*hypotheses, model.job()->probabilities());
  set_likeliest_job(*hypotheses, model.job()->probabilities(), belief);
  belief.roles = hypotheses->roles(belief.likeliest);
  refuse_what_is_not_clear(belief, run);
  return belief;
}

// A session with a workload reads the usual names and those of frameworks. Hypotheses also guess what names mean that
// say nothing, so that they know more than a session with a workload would.
void refuse_guessed_names(const forecast::Roles& roles, const std::string& directory) {
  std::vector<std::string> renamed;
  for (const auto& [name, role] : roles) renamed.push_back(fmt::format("{} is probably {}", name, role));
  if (renamed.empty()) return;
  throw UserError(fmt::format("init: a session with a workload needs the usual names of parameters, and {} has others: "
                              "{}",
                              directory, join(renamed, ", ")),
                  "rename them in its session, tune that, and then give its directory");
}

std::string probability_of(const search::JobSummary& summary, JobAspect aspect, double number,
                           const std::string& name = "") {
  const search::JobQuestion* question = summary.find(aspect);
  if (question == nullptr) return "";
  for (const search::JobAnswer& answer : question->answers) {
    if (answer.number != number || answer.name != name) continue;
    return fmt::format("{}: {}, {} likely", search::job_question_text(aspect), search::job_answer_text(aspect, answer),
                       search::job_probability_text(answer.probability));
  }
  return "";
}

// Returns JSON with a blank after each comma and colon, so that it can be broken into lines.
std::string one_line(const Json& value) {
  if (!value.is_structured()) return value.dump();
  std::vector<std::string> parts;
  for (const auto& [key, part] : value.items()) {
    parts.push_back((value.is_object() ? Json(key).dump() + ": " : "") + one_line(part));
  }
  return fmt::format("{}{}{}", value.is_object() ? "{" : "[", join(parts, ", "), value.is_object() ? "}" : "]");
}

// Returns JSON with a line for each key; lists stay on one line.
std::string pretty(const Json& value, std::size_t indent) {
  if (!value.is_object() || value.empty()) return one_line(value);
  std::vector<std::string> lines;
  for (const auto& [key, part] : value.items()) {
    lines.push_back(fmt::format("{:{}}{}: {}", "", indent + 2, Json(key).dump(), pretty(part, indent + 2)));
  }
  return fmt::format("{{\n{}\n{:{}}}}", join(lines, ",\n"), "", indent);
}

/// Makes the text of a session from its blocks.
class CommentedSession {
 public:
  CommentedSession(const LoadedRun& run, const RunBelief& belief)
      : run_(run),
        belief_(belief),
        hypotheses_(*run.prepared.candidates.hypotheses()),
        json_(session::resolved(run.session())) {
    infer();
  }

  const Json& json() const { return json_; }
  const std::vector<std::string>& inferred() const { return inferred_; }
  /// Returns whether the batch was inferred too; one that the run stated is kept.
  bool has_inferred_batch() const {
    return !is_told() && inferred_workload() && json_["workload"].contains("train_batch_size");
  }
  void drop_batch() { json_["workload"].erase("train_batch_size"); }

  std::string text() const {
    std::string text = comment(header(), 0) + "{\n";
    bool is_first = true;
    for (const auto& [key, value] : json_.items()) {
      if (!is_first) text += ",\n";
      is_first = false;
      for (const std::string& line : comments_on(key)) text += comment(line, 2);
      text += fmt::format("  {}: {}", Json(key).dump(), pretty(value, 2));
    }
    return text + "\n}\n";
  }

 private:
  const workload::Workload& likeliest() const { return hypotheses_.workload(belief_.likeliest); }
  bool is_told() const { return belief_.summary.is_told; }
  bool inferred_workload() const { return is_one_of("workload", inferred_); }

  void infer() {
    const bool is_wrong = search::is_contradicted(belief_.summary) && !hypotheses_.trains_adapters(belief_.likeliest);
    if (is_told() && !is_wrong) return;
    Json inferred = Json::object();
    inferred["workload"] = workload::to_json(likeliest());
    inferred["workload"]["assumed"] = assumed();
    inferred_.emplace_back("workload");
    const workload::ClusterSpec& cluster = hypotheses_.cluster(belief_.likeliest);
    if (run_.session().cluster.is_local() && !cluster.is_local()) {
      inferred["cluster"] = workload::to_json(cluster);
      inferred_.emplace_back("cluster");
    }
    for (const auto& [key, value] : json_.items()) {
      if (!inferred.contains(key)) inferred[key] = value;
    }
    json_ = std::move(inferred);
  }

  // What krigtune plan and tune say of such a workload.
  Json assumed() const {
    const std::string size = probability_of(belief_.summary, JobAspect::kParameters, parameters_of(likeliest()));
    return Json::array(
        {fmt::format("the workload: inferred from {} of {}{}", counted(search::closed_trials(run_.history), "trial"),
                     visible(run_.directory.string()), size.empty() ? "" : " (" + size + ")")});
  }

  std::string header() const {
    const std::string said = search::job_sentence(belief_.summary);
    std::string text = fmt::format("The session of {}, with what its {} say about the job", run_.directory.string(),
                                   counted(search::closed_trials(run_.history), "closed trial"));
    if (!said.empty()) return text + ": " + said + ".";
    return text + fmt::format(". They do not contradict it: its model is {} likely.",
                              search::job_probability_text(belief_.summary.told_model));
  }

  std::vector<std::string> comments_on(const std::string& key) const {
    if (key == "workload") return comments_on_workload();
    if (key == "cluster") return comments_on_cluster();
    return {};
  }

  std::vector<std::string> comments_on_workload() const {
    if (!inferred_workload()) {
      if (!search::is_contradicted(belief_.summary)) return {};
      return {"As in the run. A workload cannot say that only adapters are trained."};
    }
    std::vector<std::string> lines = {
        fmt::format("INFERRED: of all jobs that were considered this one is {} likely. "
                    "Correct what you know better:",
                    search::job_probability_text(belief_.probability))};
    const workload::Workload& job = likeliest();
    const auto add = [&](const std::string& line) {
      if (!line.empty()) lines.push_back("- " + line);
    };
    const search::JobSummary& summary = belief_.summary;
    add(probability_of(summary, JobAspect::kParameters, parameters_of(job)));
    add(probability_of(summary, JobAspect::kFramework, 0.0, hypotheses_.framework_name(belief_.likeliest)));
    add(probability_of(summary, JobAspect::kSequence, static_cast<double>(job.model.seq_len)));
    if (has_inferred_batch()) {
      add(probability_of(summary, JobAspect::kBatch, static_cast<double>(job.train_batch_size.value_or(0))));
    } else if (!is_told() && job.train_batch_size) {
      add("the batch is left out: not all configurations that ran divide the likeliest one");
    }
    if (!is_told()) {
      add("all else (shape of the model, precision, optimizer) is usual for a model of that size, and was not "
          "inferred");
    } else {
      add(fmt::format("the run's own, which its trials contradict ({} likely): {}",
                      search::job_probability_text(summary.told_model),
                      one_line(workload::to_json(*run_.session().workload))));
    }
    return lines;
  }

  std::vector<std::string> comments_on_cluster() const {
    std::vector<std::string> lines;
    if (is_one_of("cluster", inferred_)) {
      const auto ranks = static_cast<double>(hypotheses_.cluster(belief_.likeliest).ranks());
      const std::string probability = probability_of(belief_.summary, JobAspect::kRanks, ranks);
      lines.push_back(fmt::format("INFERRED: {}. The kind of GPU and its links are assumed.",
                                  probability.empty() ? "the number of GPUs" : probability));
    }
    const search::JobQuestion* links = belief_.summary.find(JobAspect::kLinks);
    if (links == nullptr || search::likeliest(*links).number == 1.0) return lines;
    const double times = search::likeliest(*links).number;
    lines.push_back(probability_of(belief_.summary, JobAspect::kLinks, times) +
                    ". Their data are below; \"hardware\" gives others (docs/session.md)");
    return lines;
  }

  static std::string comment(const std::string& line, std::size_t indent) {
    std::string text;
    std::istringstream parts(wrapped_lines(visible(line), static_cast<int>(kCommentWidth - indent), 2));
    for (std::string part; std::getline(parts, part);) text += fmt::format("{:{}}// {}\n", "", indent, part);
    return text;
  }

  const LoadedRun& run_;
  const RunBelief& belief_;
  const forecast::Hypotheses& hypotheses_;
  Json json_;
  std::vector<std::string> inferred_;
};

/// Configurations that ran.
struct Ran {
  int all = 0;
  int lost = 0;  ///< those that a session would not try again
};

Ran ran_with(const LoadedRun& run, const Json& json, const std::filesystem::path& file) {
  session::Session session;
  try {
    session = session::read_session(json, file.string(), std::filesystem::absolute(file).parent_path());
  } catch (const UserError& error) {
    throw UserError(fmt::format("init: what was inferred from {} does not suit its session: {}", run.directory.string(),
                                error.what()),
                    kHowTo);
  }
  const run::Prepared prepared(std::move(session));
  const forecast::Hypotheses* hypotheses = prepared.candidates.hypotheses();
  Ran ran;
  for (const journal::Trial& trial : run.history) {
    if (!trial.outcome || !trial::ran(*trial.outcome)) continue;
    space::Configuration configuration = trial.proposal.configuration;
    const bool exists = prepared.session.space.complete(configuration) == space::Exclusion::kNone &&
                        prepared.session.space.contains(configuration);
    const bool fits = prepared.filter.may_fit(configuration) ||
                      (hypotheses != nullptr && hypotheses->doubt_memory() && hypotheses->may_fit(configuration));
    ++ran.all;
    if (!exists || !fits) ++ran.lost;
  }
  return ran;
}

// A batch that some configurations do not divide is left out. Returns a warning if others are lost anyway.
std::string keep_what_ran(const LoadedRun& run, const std::filesystem::path& file, CommentedSession& session) {
  Ran ran = ran_with(run, session.json(), file);
  if (ran.lost > 0 && session.has_inferred_batch()) {
    CommentedSession without = session;
    without.drop_batch();
    const Ran then = ran_with(run, without.json(), file);
    if (then.lost < ran.lost) {
      session.drop_batch();
      ran = then;
    }
  }
  if (ran.lost == 0 || session.inferred().empty()) return "";
  if (ran.lost == ran.all) {
    throw UserError(
        fmt::format("init: what was inferred from {} would exclude all that ran there", run.directory.string()),
        kHowTo);
  }
  return fmt::format("{} of {} that ran in {} are excluded by what was inferred; correct {} where you know better",
                     ran.lost, counted(ran.all, "trial"), run.directory.string(), file.string());
}

std::string remark_on(const CommentedSession& session, const RunBelief& belief) {
  const std::string said = search::job_sentence(belief.summary);
  if (!said.empty()) return "the job: " + said;
  return session.inferred().empty() ? "the trials do not contradict the session, which is written as it was" : "";
}

bool only_owner_may_read(const std::filesystem::path& file) {
  using std::filesystem::perms;
  std::error_code error;
  const perms mode = std::filesystem::status(file, error).permissions();
  return !error && (mode & (perms::group_read | perms::others_read)) == perms::none;
}

}  // namespace

InferredSession inferred_session(const Context& context, const std::filesystem::path& directory,
                                 const std::filesystem::path& file) {
  const LoadedRun run(context, directory);
  const RunBelief belief = belief_of(run);
  if (!belief.summary.is_told) refuse_guessed_names(belief.roles, directory.string());
  CommentedSession session(run, belief);
  InferredSession result;
  if (const std::string warning = keep_what_ran(run, file, session); !warning.empty()) {
    result.warnings.push_back(warning);
  }
  result.text = session.text();
  result.inferred = session.inferred();
  result.remark = remark_on(session, belief);
  result.job = belief.summary;
  result.may_hold_a_secret = only_owner_may_read(run::session_path(directory));
  return result;
}

}  // namespace krigtune::cli
