// krigtune doctor: what this machine has, what it lacks, and what that costs.
#include <fmt/format.h>

#include <ostream>
#include <sstream>

#include "doctor_checks.h"
#include "document.h"

namespace krigtune {
namespace {

void declare_doctor(boost::program_options::options_description& /*options*/) {}

const char* color_of(Health health) {
  switch (health) {
    case Health::kOk:
      return "\033[32m";
    case Health::kWarn:
      return "\033[33m";
    case Health::kFail:
      return "\033[31m";
    case Health::kSkip:
      return "\033[2m";
  }
  return "";
}

std::string line_of(const Finding& finding, bool colors) {
  const std::string word = fmt::format("{:<4}", to_string(finding.health));
  std::string text = colors ? color_of(finding.health) + word + "\033[0m" : word;
  text += fmt::format("  {:<15}  {}", finding.name, finding.what);
  std::istringstream costs(finding.cost);
  for (std::string line; std::getline(costs, line);) text += fmt::format("\n{:>23}{}", "", line);
  return text + "\n";
}

int doctor(const Context& context) {
  const std::vector<Finding> findings = examine(context.console);
  bool bench_is_missing = false;
  Json list = Json::array();
  for (const Finding& finding : findings) {
    bench_is_missing = bench_is_missing || (finding.health == Health::kFail && finding.is_needed);
    list.push_back({{"name", finding.name},
                    {"status", to_string(finding.health)},
                    {"what", finding.what},
                    {"cost", finding.cost}});
  }
  if (context.arguments.flag("json")) {
    Json json = new_document("doctor");
    json["checks"] = list;
    print(context, json);
  } else {
    const bool colors = context.console.colors && context.console.out_is_terminal;
    for (const Finding& finding : findings) context.console.out << line_of(finding, colors);
  }
  return bench_is_missing ? ExitCode::kEnvironment : ExitCode::kDone;
}

}  // namespace

Command doctor_command() {
  return {"doctor",
          "",
          "Shows what this machine has, what it lacks and what that costs",
          "Each line is OK, WARN, FAIL or SKIP (not here, and not needed for what works without). Exit code 3\n"
          "where trials cannot run at all.",
          declare_doctor,
          doctor};
}

}  // namespace krigtune
