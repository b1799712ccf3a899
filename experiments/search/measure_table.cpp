// Measures every configuration of a session with the runner "simulate", including those that cannot fit, and prints the
// table that the runner "replay" reads.  usage: measure_table SESSION.json >TABLE.csv
// that the runner "replay" reads.  usage: measure_table SESSION.json >TABLE.csv
#include <fmt/format.h>

#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "core/csv.h"
#include "core/error.h"
#include "runner/simulate.h"
#include "session/session.h"

namespace krigtune {
namespace {

std::vector<std::string> row_of(const session::Session& session, const space::Configuration& configuration,
                                const trial::Outcome& outcome) {
  std::vector<std::string> row;
  for (const space::Parameter& parameter : session.space.parameters()) {
    const space::Value* value = configuration.find(parameter.name);
    row.push_back(value == nullptr ? "" : space::to_string(*value));
  }
  const auto* result = std::get_if<trial::Measured>(&outcome);
  row.emplace_back(trial::status_text(outcome));
  row.push_back(result == nullptr ? "" : fmt::format("{:.6g}", result->metrics.at(session.objective.field)));
  const bool has_peak = result != nullptr && result->peak_memory;
  row.push_back(has_peak ? fmt::format("{}", result->peak_memory->count) : "");
  return row;
}

void measure(const std::filesystem::path& file) {
  const session::Session session = session::load_session(file);
  if (!runner::is<runner::SimulateSpec>(session.runner)) {
    throw UserError(fmt::format("{}: /runner/kind is not \"simulate\"", file.string()), "give a session that has it");
  }
  const auto runner = runner::make_simulate_runner({*session.workload, session.cluster, session.memory, session.space,
                                                    std::get<runner::SimulateSpec>(session.runner)});
  std::vector<std::string> header;
  for (const space::Parameter& parameter : session.space.parameters()) header.push_back(parameter.name);
  header.insert(header.end(), {"status", session.objective.metric, "peak_memory_bytes"});
  std::cout << csv_line(header);
  session.space.for_each([&](const space::Configuration& configuration) {
    std::cout << csv_line(row_of(session, configuration, runner->run(configuration, {})));
    return true;
  });
}

}  // namespace
}  // namespace krigtune

int main(int argc, char** argv) {
  try {
    if (argc != 2) throw krigtune::UserError("usage: measure_table SESSION.json", "name one session");
    krigtune::measure(argv[1]);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
