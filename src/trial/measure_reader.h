#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trial/job_log.h"
#include "trial/measurement.h"

namespace krigtune::trial {

/// The locations of a job's output.
struct JobOutputs {
  std::filesystem::path standard_output;
  std::filesystem::path standard_error;
  std::filesystem::path working_directory;  ///< base of the spec's relative paths
};

/// Reads the new parts of a running job's output and files, and measures.
///
///   MeasureReader reader(spec, facts, outputs);     // before the job starts: what is in its files now is old
///   process.enough = [&] { return reader.look() && is_enough(reader.measurement()); };
///   run_process(process, clock);
///   reader.finish();
class MeasureReader {
 public:
  /// The spec's placeholders must be filled in. stdout and stderr are read from their beginning.
  MeasureReader(MeasureSpec spec, MeasureFacts facts, JobOutputs outputs);
  ~MeasureReader();
  MeasureReader(const MeasureReader&) = delete;
  MeasureReader& operator=(const MeasureReader&) = delete;

  /// Returns whether something was read. It is called about twenty times a second, so it reads at most 32 MiB of a
  /// file.
  bool look();
  /// Reads the rest, including incomplete last lines; call it when the job has ended.
  void finish();

  const Measurement& measurement() const { return measurement_; }
  /// Returns how many bytes of that output were read so far; the largest number if nothing is measured in it.
  std::uint64_t read_up_to(const std::filesystem::path& output) const;
  /// Returns the number of bytes so far: a sign of life.
  std::int64_t bytes_read() const { return bytes_read_; }

 private:
  class Stream;
  struct Source;

  void find_files();
  void open(const Source& source, const std::filesystem::path& file, bool is_old);
  bool read(std::size_t most_bytes);

  Measurement measurement_;
  JobOutputs outputs_;
  std::vector<Source> sources_;
  std::map<std::filesystem::path, std::unique_ptr<Stream>> streams_;
  std::int64_t bytes_read_ = 0;
  std::int64_t looks_ = 0;
};

/// Returns the metrics of the spec that may be in a file: those that are read from `from`; "stdout" and "stderr"
/// include metrics that are read from "output".
std::vector<std::size_t> metrics_from(const MeasureSpec& spec, const std::string& from);

/// Measures a whole file as if all metrics came from it. `visit` receives each line with its matches.
void measure_file(Measurement& measurement, const std::filesystem::path& file,
                  const std::function<void(const std::string& line, const std::vector<LineMatch>& found)>& visit);

}  // namespace krigtune::trial
