#include "compare/table_worth.h"

#include "krigtune/tuner/goodput.h"

namespace krigtune {
namespace {

// Tables hold the throughput where goodput is wanted.
double worth(const Session& session, const Configuration& configuration, double value) {
  const Objective& objective = session.objective;
  if (objective.throughput_field.empty()) return value;
  const auto batch = static_cast<double>(global_batch(session, configuration));
  return value * statistical_efficiency(*objective.gradient_noise, batch);
}

}  // namespace

std::optional<double> worth_in_table(const Session& session, const Configuration& configuration) {
  if (!session.table) return std::nullopt;
  const std::optional<double> value = session.table->value_of(configuration);
  return value ? std::optional(worth(session, configuration, *value)) : std::nullopt;
}

std::optional<double> optimum_of_table(const Session& session) {
  if (!session.table) return std::nullopt;
  return session.table->optimum(session.space, [&](const Configuration& configuration, double value) {
    return worth(session, configuration, value);
  });
}

}  // namespace krigtune
