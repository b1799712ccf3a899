#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "executor/batch_system.h"
#include "trial/process.h"

namespace krigtune::executor {

/// The files by which a job and the tuner inform each other. They lie in the trial's directory, which every node sees.
struct JobFiles {
  explicit JobFiles(const std::filesystem::path& trial_directory) : dir(std::filesystem::absolute(trial_directory)) {}
  std::filesystem::path dir;
  std::filesystem::path script() const { return dir / "job.sh"; }
  std::filesystem::path log() const { return dir / "job.log"; }         ///< output of the script and of Slurm's daemons
  std::filesystem::path submitted() const { return dir / "job.json"; }  ///< SubmittedJob; written by the tuner
  std::filesystem::path started() const { return dir / "job_start.json"; }  ///< written by the job
  std::filesystem::path ended() const { return dir / "job_exit.json"; }     ///< written by the job
};

/// The content of job.json, which is written before the job is submitted and again when its id is known.
struct SubmittedJob {
  std::string name;
  std::string id;     ///< the scheduler's id; "" while it is not known
  std::string token;  ///< names this try; the job copies it from its script into its files, so that those of another
                      ///< try are not taken
};
void write_submitted(const JobFiles& files, const SubmittedJob& job);
std::optional<SubmittedJob> read_submitted(const JobFiles& files);

/// The contents of job_start.json and job_exit.json. Times are durations on the job's own node, because the nodes'
/// clocks differ.
struct JobStart {
  std::string token;
  std::string id;  ///< the scheduler's id; "" if it does not tell the job
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
  std::string signal;  ///< signal that reached the script while the program ran, such as "TERM"; "" if there was none
  std::string start_error;  ///< says why the program was not started; empty if it was
  double wall_s = 0.0;
  std::int64_t peak_rss_bytes = 0;  ///< of the largest process, sampled every few seconds; 0 if not known
  std::int64_t stdout_bytes = -1;   ///< length of the output as the node sees it; -1 if not known
  std::int64_t stderr_bytes = -1;
};
/// These return nothing while the file does not exist. They read the directory anew, because NFS remembers for up to a
/// minute that a file was missing (nfs(5), acdirmax, lookupcache).
std::optional<JobStart> read_start(const JobFiles& files);
std::optional<JobExit> read_exit(const JobFiles& files);
/// Tells whether both output files are as long here as the job saw them.
bool outputs_are_complete(const JobExit& exit, const trial::ProcessSpec& spec);

/// Removes what an earlier try of the trial left. Throws EnvironmentError where that fails.
void remove_job_files(const JobFiles& files);

/// Returns the job's script: it starts the program with its environment in its directory, passes SIGTERM on, and writes
/// down when the program begins and how it ends. The words of `launcher` precede the program's own.
std::string job_script(const JobFiles& files, const trial::ProcessSpec& spec, const std::vector<std::string>& launcher,
                       const std::string& token, int port);

/// Says why nothing can be written into `directory` ("No space left on device", "Disk quota exceeded"); "" if it can.
std::string write_trouble(const std::filesystem::path& directory);

}  // namespace krigtune::executor
