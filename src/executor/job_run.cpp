// Three witnesses say what became of a job. In order of trust they are its exit file, which the job itself writes last;
// the messages that Slurm's daemons wrote into its output; and the scheduler's answer. The exit file can be late,
// because the file system remembers that it was not there; the scheduler can be silent while its controller restarts,
// or forget the job (MinJobAge). Therefore none of them counts as missing before some time has passed by our own clock.
// Times of other machines are never compared with ours.
#include "executor/job_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "core/error.h"
#include "core/files.h"
#include "core/secret.h"
#include "core/text.h"
#include "executor/slurm_text.h"
#include "trial/trial_files.h"

namespace krigtune::executor {
namespace {

constexpr double kTickS = 0.1;
constexpr double kFileLookS = 0.3;
constexpr int kKilled = 128 + SIGKILL;
constexpr int kBySignal = 128;

std::int64_t number_of_job(const std::string& id) {
  std::int64_t number = 0;
  for (const char c : id) {
    if (c < '0' || c > '9') break;
    number = 10 * number + (c - '0');
  }
  return number;
}

// Returns the job with that id, or without an id the last of the jobs of the trial's name.
const JobState* newest(const std::vector<JobState>& jobs, const std::string& id) {
  const JobState* best = nullptr;
  for (const JobState& job : jobs) {
    if (!id.empty() && job.id == id) return &job;
    if (best == nullptr || number_of_job(job.id) > number_of_job(best->id)) best = &job;
  }
  return id.empty() ? best : nullptr;
}

}  // namespace

JobRun::JobRun(JobRoom& room, const trial::TrialTask& task, const trial::ProcessSpec& spec, int port,
               const Clock& clock, std::function<void(const std::string&)> say_where)
    : room_(room),
      task_(task),
      spec_(spec),
      files_(task.directory),
      name_(job_name(task)),
      port_(port),
      clock_(clock),
      say_where_(std::move(say_where)) {}

std::string JobRun::job() const { return fmt::format("{} job {}", room_.system->name(), id_); }

bool JobRun::wants_stop() const { return spec_.stop != nullptr && spec_.stop->load(); }

void JobRun::lose(const std::string& why) { result_.lost = why; }

void JobRun::say_once(const std::string& line) {
  if (said_.insert(line).second) room_.options.say(fmt::format("trial {}: {}", task_.number, line));
}

void JobRun::tell_of_waiting(double now_s) {
  constexpr double kWorthTellingS = 60.0;
  if (!state_ || state_->reason.empty() || now_s - pending_since_s_ < kWorthTellingS) return;
  say_once(fmt::format("{} waits: {}", job(), state_->reason));
}

trial::ProcessResult JobRun::until_it_ends() {
  if (task_.adopted) {
    limit_s_ = room_.full_limit_s(spec_);
    if (find()) wait_for_end();
  } else {
    limit_s_ = room_.likely_limit_s(spec_);
    do {
      again_ = false;
      if (submit()) wait_for_end();
    } while (again_);
  }
  room_.watch.remove(name_);
  return result_;
}

void JobRun::follow(const std::string& id) {
  id_ = id;
  state_.reset();
  is_absent_ = false;
  absent_since_s_ = ended_since_s_ = exit_since_s_ = running_since_s_ = std::nullopt;
  answers_ = answers_at_start_ = 0;
  pending_since_s_ = clock_.now_s();
  write_submitted(files_, {name_, id_, token_});
  room_.watch.add(name_, id_);
  say_where_(fmt::format("job {}, waits", id_));
}

// Looks for a job whose submission got no answer: it may have been accepted all the same.
std::optional<std::string> JobRun::live_job_of_that_name() {
  const std::optional<std::vector<JobState>> jobs = room_.system->jobs({{name_, ""}});
  if (!jobs) return std::nullopt;
  std::vector<JobState> live;
  for (const JobState& job : *jobs) {
    if (job.phase != JobState::Phase::kEnded && job.name == name_) live.push_back(job);
  }
  const JobState* last = newest(live, "");
  return last == nullptr ? std::nullopt : std::optional(last->id);
}

// Returns false if the job was not submitted; result_ then says why.
bool JobRun::submit() {
  if (read_submitted(files_)) room_.system->cancel_named(name_);
  remove_job_files(files_);
  const std::vector<std::string> launcher = room_.system->launcher(spec_.argv, task_.needs);
  token_ = new_token();
  write_private(files_.script(), job_script(files_, spec_, launcher, token_, port_));
  write_submitted(files_, {name_, "", token_});
  const double begun_s = clock_.now_s();
  constexpr double kFirstPauseS = 1.0;
  constexpr double kLongestPauseS = 30.0;
  for (double pause_s = kFirstPauseS;; pause_s = std::min(2.0 * pause_s, kLongestPauseS)) {
    const JobRequest request{name_,       files_.dir, files_.script(),     files_.log(),
                             task_.needs, limit_s_,   room_.failed_nodes()};
    const Submission answer = room_.system->submit(request);
    if (answer.answer == Submission::Answer::kAccepted) return follow(answer.id), true;
    if (answer.answer == Submission::Answer::kRefused && !request.avoid.empty()) {
      room_.forget_failed_nodes();  // too few nodes may be left without them
      continue;
    }
    if (answer.answer == Submission::Answer::kRefused) {
      result_.start_error = answer.text;
      return false;
    }
    say_where_(answer.text);
    say_once(answer.text + "; trying again");
    const double until_s = clock_.now_s() + pause_s;
    while (clock_.now_s() < until_s) {
      if (wants_stop() || (room_.options.ending != nullptr && room_.options.ending->load())) {
        result_.stopped = true;
        return false;
      }
      clock_.sleep_until_s(clock_.now_s() + kTickS);
    }
    if (room_.options.pending_limit_s && clock_.now_s() - begun_s > *room_.options.pending_limit_s) {
      result_.start_error = fmt::format("not submitted for {:.0f} s: {}", clock_.now_s() - begun_s, answer.text);
      return false;
    }
    if (const std::optional<std::string> id = live_job_of_that_name()) return follow(*id), true;
  }
}

// Looks for the job that an earlier process left. Returns false if there is none to follow; result_ then says what is
// known.
bool JobRun::find() {
  const std::optional<SubmittedJob> submitted = read_submitted(files_);
  if (!submitted) {  // job.json is written before anything is submitted
    lose("no job of this trial was submitted");
    was_begun_ = false;
    return false;
  }
  token_ = submitted->token;
  const std::optional<JobExit> exit = read_exit(files_);
  if (exit && exit->signal.empty() && exit->token == token_) {
    return follow(submitted->id.empty() ? exit->id : submitted->id), true;
  }
  room_.watch.add(name_, submitted->id);
  say_where_("looking for the job of an earlier krigtune");
  constexpr int kEnoughAnswers = 2;  // the earlier process may have died while its sbatch was on its way
  while (true) {
    const JobWatch::Seen seen = room_.watch.look(name_);
    room_.tell_of_silence(seen.silent_s);
    if (const JobState* job = newest(seen.jobs, submitted->id)) return follow(job->id), true;
    if (wants_stop()) {
      result_.stopped = true;
      return false;
    }
    if (seen.answers >= kEnoughAnswers) break;
    clock_.sleep_until_s(clock_.now_s() + kTickS);
  }
  // The scheduler has forgotten the job, but its files may be late.
  if (!submitted->id.empty()) return follow(submitted->id), true;
  lose("the job of this trial was not submitted");
  was_begun_ = false;
  return false;
}

void JobRun::wait_for_end() {
  while (true) {
    const double now_s = clock_.now_s();
    if (ended_by_files(now_s) || ended_by_scheduler(now_s)) return;
    if (cancelled_s_ && is_over_after_cancel(now_s)) return;
    if (!cancelled_s_) end_on_request(now_s);
    if (cancelled_s_ && now_s >= next_cancel_s_) cancel(now_s);
    clock_.sleep_until_s(now_s + kTickS);
  }
}

bool JobRun::ended_by_files(double now_s) {
  if (now_s < next_file_look_s_) return false;
  // This bounds the number of looks at the file system in a second, however many jobs there are.
  constexpr double kJobsAtFullRate = 10.0;
  next_file_look_s_ = now_s + kFileLookS * std::max(1.0, room_.taken() / kJobsAtFullRate);
  if (!running_since_s_) {
    if (const std::optional<JobStart> start = read_start(files_); start && start->token == token_) {
      if (start->restarts >= restarts_) note_start(now_s, 0.0);  // the file may be that of an earlier run of this job
    }
  }
  const std::optional<JobExit> exit = read_exit(files_);
  if (!exit || exit->token != token_ || exit->restarts < restarts_) return false;
  if (!exit_since_s_) exit_since_s_ = now_s;
  exit_ = exit;
  if (!is_settled(*exit, now_s)) return false;
  end_as_file_says(*exit);
  return true;
}

// Tells whether no other witness can change what the exit file says.
bool JobRun::is_settled(const JobExit& exit, double now_s) {
  if (!outputs_are_complete(exit, spec_) && now_s - *exit_since_s_ < room_.options.patience_s) return false;
  if (cancelled_s_ || !exit.start_error.empty()) return true;
  const bool is_over = (state_ && state_->phase == JobState::Phase::kEnded) || is_absent_;
  // Somebody ended the job: a preemption, a limit or scancel. The scheduler knows which, and whether the job runs
  // again.
  if (!exit.signal.empty()) return false;
  const bool was_killed = exit.exit_code > kBySignal;
  return !was_killed || is_over || now_s - *exit_since_s_ >= room_.options.patience_s;
}

void JobRun::end_as_file_says(const JobExit& exit) {
  constexpr std::size_t kTailBytes = 1 << 16;
  result_.exit_code = exit.exit_code;
  result_.start_error = exit.start_error;
  result_.wall_s = exit.wall_s;
  result_.peak_rss_bytes = exit.peak_rss_bytes;
  say_where_(fmt::format("{}, job {}", exit.nodes.empty() ? exit.host : exit.nodes, id_));
  if (cancelled_s_ || !exit.start_error.empty()) return;
  const bool is_ended = state_ && state_->phase == JobState::Phase::kEnded;
  if (exit.exit_code > kBySignal && is_ended && state_->end != JobState::End::kByItself) return end_as_scheduler_says();
  DaemonWords said = daemon_words(trial::read_tail(spec_.stderr_file, kTailBytes));
  if (said.line.empty()) said = daemon_words(trial::read_tail(files_.log(), kTailBytes));
  // srun returns 0 after a node has failed (Slurm 22.05), so the daemons' message counts whatever the exit code.
  if (said.node_failure || (is_ended && state_->end == JobState::End::kNodeFailure && exit.exit_code != 0)) {
    for (const std::string& node : room_.system->broken_nodes(exit.nodes)) room_.note_failed_nodes(node);
    lose(fmt::format("{} on {}: a node failed ({})", job(), exit.nodes, said.line.empty() ? state_->word : said.line));
    return;
  }
  if (exit.exit_code == 0) {
    room_.note_duration(exit.wall_s);
    return;
  }
  if (said.preempted) lose(fmt::format("{} was preempted ({})", job(), said.line));
  if (said.cancelled) lose(fmt::format("{}: its step was cancelled, not by krigtune", job()));
  result_.out_of_memory = said.out_of_memory || (is_ended && state_->end == JobState::End::kOutOfMemory);
  result_.timed_out = said.time_limit;
}

void JobRun::note_start(double now_s, double elapsed_s) {
  if (running_since_s_) return;
  running_since_s_ = now_s - elapsed_s;
  answers_at_start_ = answers_;
  watchdog_.emplace(spec_, now_s);
  say_where_(fmt::format("job {}", id_));
}

void JobRun::see(const JobState& state, int answers, double now_s) {
  // The start file may overtake the scheduler's answers: an answer to an older question still says "pending".
  const bool is_old = answers < answers_at_start_ + 2 && !(state_ && state_->phase == JobState::Phase::kRunning);
  if (running_since_s_ && state.phase == JobState::Phase::kPending && is_old) return;
  const bool was_running = running_since_s_.has_value();
  state_ = state;
  is_absent_ = false;
  absent_since_s_.reset();
  switch (state.phase) {
    case JobState::Phase::kPending:
      ended_since_s_.reset();
      say_where_(fmt::format("job {}, waits{}", id_, state.reason.empty() ? "" : ": " + state.reason));
      if (!was_running) return;
      // The job was put back into the queue, so what its first run left does not count.
      running_since_s_.reset();
      watchdog_.reset();
      exit_since_s_.reset();
      pending_since_s_ = now_s;
      ++restarts_;
      return;
    case JobState::Phase::kRunning:
      ended_since_s_.reset();
      note_start(now_s, state.elapsed_s.value_or(0.0));
      say_where_(fmt::format("{}, job {}", state.nodes, id_));
      return;
    case JobState::Phase::kEnded:
      if (!ended_since_s_) ended_since_s_ = now_s;
      return;
  }
}

bool JobRun::ended_by_scheduler(double now_s) {
  const JobWatch::Seen seen = room_.watch.look(name_);
  room_.tell_of_silence(seen.silent_s);
  if (const JobState* job = newest(seen.jobs, id_)) {
    answers_ = seen.answers;
    see(*job, seen.answers, now_s);
  } else if (seen.answers > 0) {
    is_absent_ = true;
    if (!absent_since_s_) {
      absent_since_s_ = now_s;
      forgotten_ = room_.system->forgotten(id_);
    }
    if (forgotten_ && forgotten_->phase == JobState::Phase::kEnded) {
      state_ = forgotten_;
      if (!ended_since_s_) ended_since_s_ = now_s;
    } else if (now_s - *absent_since_s_ >= room_.options.patience_s) {
      lose(fmt::format("{} is no longer known to the scheduler and left no {}", job_name(task_),
                       files_.ended().filename().string()));
      return true;
    }
  }
  if (!ended_since_s_ || cancelled_s_) return false;
  if (taken_back_s_ && state_->end == JobState::End::kCancelled) {
    result_.stopped = true;
    return true;
  }
  // The last words of a job that came to its own end must appear sooner or later; one that was ended may have written
  // none.
  constexpr double kLateWordsS = 3.0;
  const bool by_itself = state_->end == JobState::End::kByItself;
  const double patience_s = by_itself ? room_.options.patience_s : std::min(kLateWordsS, room_.options.patience_s);
  if (now_s - *ended_since_s_ < patience_s) return false;
  end_as_scheduler_says();
  return true;
}

std::string JobRun::last_log_line() const {
  constexpr std::size_t kTailBytes = 4096;
  const std::string text = trimmed(trial::read_tail(files_.log(), kTailBytes));
  const std::size_t end = text.rfind('\n');
  return text.substr(end == std::string::npos ? 0 : end + 1);
}

// There is neither an exit file nor a reason, so something is wrong with the directory or with the node.
void JobRun::end_without_exit_file() {
  const std::string log = last_log_line();
  const std::string said = log.empty() ? "" : fmt::format("; its log ends: {}", log);
  if (const std::string trouble = write_trouble(files_.dir); !trouble.empty()) {
    result_.start_error = fmt::format(
        "{} could not leave its result in '{}': {}; free some space or move the run "
        "directory (--out)",
        job(), files_.dir.string(), trouble);
  } else if (!read_start(files_)) {
    result_.start_error = fmt::format(
        "{} ended on {} ({}) and wrote nothing into '{}': is that directory on a file system that the nodes "
        "share? If not, choose one with --out{}",
        job(), state_->nodes, state_->word, files_.dir.string(), said);
  } else {
    lose(fmt::format("{} ended on {} ({}) and printed nothing into {}{}", job(), state_->nodes, state_->word,
                     files_.ended().filename().string(), said));
  }
}

void JobRun::end_as_scheduler_says() {
  const std::string ended = fmt::format("{} on {} ({})", job(), state_->nodes, state_->word);
  result_.exit_code = kKilled;
  result_.wall_s = running_since_s_ ? std::max(0.0, *ended_since_s_ - *running_since_s_) : 0.0;
  if (exit_) result_.wall_s = exit_->wall_s;
  say_where_(fmt::format("{}, job {}", state_->nodes, id_));
  switch (state_->end) {
    case JobState::End::kByItself:
      return end_without_exit_file();
    case JobState::End::kTimeLimit:
      if (limit_s_ < room_.full_limit_s(spec_) && !task_.adopted) {
        limit_s_ = room_.full_limit_s(spec_);
        again_ = true;  // only our guess was too short
        return;
      }
      result_.timed_out = true;
      return;
    case JobState::End::kOutOfMemory:
      result_.out_of_memory = true;
      return;
    case JobState::End::kCancelled:
      return lose(ended + " was cancelled, not by krigtune");
    case JobState::End::kNodeFailure:
      for (const std::string& node : room_.system->broken_nodes(state_->nodes)) room_.note_failed_nodes(node);
      return lose(ended + ": a node failed");
    case JobState::End::kPreempted:
      return lose(ended + " was preempted");
    case JobState::End::kOther:
      return lose(ended + " was ended by the scheduler");
  }
}

void JobRun::end_on_request(double now_s) {
  if (wants_stop()) {
    result_.stopped = true;
    return cancel(now_s);
  }
  if (running_since_s_) {
    end_while_running(now_s);
  } else {
    end_while_pending(now_s);
  }
}

void JobRun::end_while_pending(double now_s) {
  tell_of_waiting(now_s);
  const std::string reason = state_ && !state_->reason.empty() ? state_->reason : "no reason given yet";
  if (room_.options.ending != nullptr && room_.options.ending->load()) {
    // The job may have begun since the scheduler was asked; then it goes on.
    constexpr double kAgainS = 10.0;
    if (!taken_back_s_ || now_s - *taken_back_s_ >= kAgainS) {
      room_.system->take_back(id_);
      taken_back_s_ = now_s;
    }
    return;
  }
  if (state_ && state_->never_starts) {
    result_.start_error = fmt::format(
        "{} can never start: {}; ask for less (\"sbatch\" of the executor, ranks and GPUs "
        "of the trial), or let an administrator release it",
        job(), reason);
    return cancel(now_s);
  }
  if (room_.options.pending_limit_s && now_s - pending_since_s_ >= *room_.options.pending_limit_s) {
    result_.start_error = fmt::format(
        "{} waited for {:.0f} s and was cancelled: {}; raise --pending-limit, or ask for resources that are free "
        "(sinfo)",
        job(), now_s - pending_since_s_, reason);
    return cancel(now_s);
  }
}

void JobRun::end_while_running(double now_s) {
  result_.timed_out = now_s - *running_since_s_ >= spec_.timeout_s;
  result_.hung = !result_.timed_out && watchdog_->expired(now_s);
  if (now_s >= next_wish_s_) {
    next_wish_s_ = now_s + kFileLookS;  // `enough` reads files of a shared file system
    result_.cut_short = !result_.timed_out && !result_.hung && spec_.enough && spec_.enough();
  }
  if (result_.timed_out || result_.hung || result_.cut_short) cancel(now_s);
}

void JobRun::cancel(double now_s) {
  constexpr double kAgainS = 10.0;  // the controller may not have answered
  if (!cancelled_s_) {
    cancelled_s_ = now_s;
    if (running_since_s_) result_.wall_s = now_s - *running_since_s_;
    result_.exit_code = running_since_s_ ? kKilled : 0;
  }
  next_cancel_s_ = now_s + kAgainS;
  // A job that never ran leaves nothing to wait for.
  if (room_.system->cancel(id_) && !running_since_s_) is_taken_back_ = true;
}

bool JobRun::is_over_after_cancel(double now_s) {
  constexpr double kLongestS = 300.0;  // Slurm's KillWait, and nodes that do not answer
  return is_taken_back_ || is_absent_ || ended_since_s_ || now_s - *cancelled_s_ > kLongestS;
}

}  // namespace krigtune::executor
