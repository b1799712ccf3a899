// my_tuner SESSION DIR asks and tells a session whose best configuration is known: parallel=4 buffer_mb=16.
#include <krigtune/tuning.h>

#include <cmath>
#include <cstdio>

namespace {

double value_of(const krigtune::ParameterValues& configuration, const std::string& parameter) {
  for (const auto& [name, value] : configuration) {
    if (name == parameter) return static_cast<double>(std::get<std::int64_t>(value));
  }
  return 0.0;
}

double microseconds_of(const krigtune::ParameterValues& configuration) {
  const double threads = std::log2(value_of(configuration, "parallel") / 4.0);
  const double buffer = std::log2(value_of(configuration, "buffer_mb") / 16.0);
  return 100.0 * std::exp(0.3 * threads * threads + 0.1 * buffer * buffer);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  krigtune::Tuning tuning(argv[1], argv[2]);
  for (int trial = 0; trial < 14; ++trial) {
    const auto asked = tuning.ask();
    if (!asked) break;
    tuning.tell(asked->number, krigtune::TrialResult::ok(microseconds_of(asked->configuration)));
  }
  const auto best = tuning.best();
  if (!best) return 1;
  const double parallel = value_of(best->configuration, "parallel");
  const double buffer_mb = value_of(best->configuration, "buffer_mb");
  std::printf("%.1f us with parallel=%g buffer_mb=%g, %.2fx the baseline\n", best->value, parallel, buffer_mb,
              best->gain);
  return parallel == 4.0 && buffer_mb == 16.0 ? 0 : 1;
}
