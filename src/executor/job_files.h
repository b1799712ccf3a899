#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "executor/batch_system.h"
#include "trial/process.h"

namespace krigtune::executor {

/// The files by which a job and the tuner know of each other. They lie in the trial's directory, which every node sees.
struct JobFiles {
  explicit JobFiles(const std::filesystem::path& trial_directory) : dir(std::filesystem::absolute(trial_directory)) {}
  std::filesystem::path dir;
  std::filesystem::path script() const { return dir / "job.sh"; }
  std::filesystem::path log() const { return dir / "job.log"; }         ///< of the script: the scheduler's own words
  std::filesystem::path submitted() const { return dir / "job.json"; }  ///< SubmittedJob; written by the tuner
  std::filesystem::path started() const { return dir / "job_start.json"; }  ///< written by the job
  std::filesystem::path ended() const { return dir / "job_exit.json"; }     ///< written by the job
};

/// job.json, written before the job is submitted and again when its id is known.
struct SubmittedJob {
  std::string name;
  std::string id;     ///< the scheduler's; "": not known yet
  std::string token;  ///< of this try, in its script: the job writes it into its files, so that no other's are taken
};
void write_submitted(const JobFiles& files, const SubmittedJob& job);
std::optional<SubmittedJob> read_submitted(const JobFiles& files);

/// job_start.json and job_exit.json. Times are durations on the job's own node: clocks of nodes differ.
struct JobStart {
  std::string token;
  std::string id;  ///< the scheduler's, where it tells the job
  std::string host;
  int restarts = 0;
};
struct JobExit {
  std::string token;
  std::string id;
  std::string host;
  std::string nodes;
  int restarts = 0;
  int exit_code = 0;
  std::string signal;       ///< that reached the script while the program ran: "TERM"; "": none
  std::string start_error;  ///< not empty: the program was not started
  double wall_s = 0.0;
  std::int64_t peak_rss_bytes = 0;  ///< of the largest process, looked at every few seconds; 0: not known
  std::int64_t stdout_bytes = -1;   ///< that the output has, seen from the node; -1: not known
  std::int64_t stderr_bytes = -1;
};
/// Empty: not there (yet). Reads the directory anew, so that what a file system remembers of a missing file does not
/// count (NFS keeps that for up to a minute: nfs(5), acdirmax, lookupcache).
std::optional<JobStart> read_start(const JobFiles& files);
std::optional<JobExit> read_exit(const JobFiles& files);
/// Whether our view of the two output files is as long as the job's own.
bool outputs_are_complete(const JobExit& exit, const trial::ProcessSpec& spec);

/// Before a trial is begun anew: what an earlier try left. Throws EnvironmentError where that cannot be.
void remove_job_files(const JobFiles& files);

/// The script: starts the program with its environment in its directory, passes SIGTERM on, and says when it begins and
/// how it ends. `launcher`: words before the program's own.
std::string job_script(const JobFiles& files, const trial::ProcessSpec& spec, const std::vector<std::string>& launcher,
                       const std::string& token, int port);

/// Why nothing can be written there: "No space left on device", "Disk quota exceeded"; "": it can.
std::string write_trouble(const std::filesystem::path& directory);

}  // namespace krigtune::executor
