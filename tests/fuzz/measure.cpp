#include <algorithm>

#include "fuzz/fuzz.h"
#include "trial/job_log.h"
#include "trial/measurement.h"

namespace {

void read_output(const std::string& metric, std::string_view output) {
  krigtune::trial::MeasureSpec spec;
  spec.metrics.push_back(krigtune::trial::measure_from_text(metric, "--metric"));
  krigtune::trial::Measurement measurement(spec, {});
  krigtune::trial::LineSplitter splitter;
  const auto take = [&](const std::string& line) { measurement.take_line(0, line, {0}, true); };
  splitter.add(output, take);
  splitter.finish(take);
  static_cast<void>(measurement.values());
  static_cast<void>(measurement.why_nothing(spec.metrics.front().name));
  static_cast<void>(measurement.warnings(spec.metrics.front().name));
}

}  // namespace

// The first line is what a command line says of a metric, NAME=REGEX; the rest is the job's output. An expression that
// takes too long on a line is given up (core/pattern.h), so it reads the whole output too.
KRIGTUNE_FUZZ(measure) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view output = std::string_view(text).substr(end);
  read_output("step_time_s=step time: ([0-9.]+)( s|$)", output);
  read_output("loss=loss[:=] *([-+0-9.eE]+|nan)(?:,|$)", output);
  read_output(text.substr(0, end), output);
}
