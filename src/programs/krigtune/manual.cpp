// The manual pages of krigtune and of each of its commands, made from the same declarations as the help.
#include <fmt/format.h>

#include "programs/krigtune/command.h"
#include "programs/krigtune/command_line.h"

namespace krigtune::cli {
namespace {

std::string page_of(const Command& command) { return fmt::format("krigtune-{}", command.name); }

std::vector<manual::Item> option_items(const Command& command) {
  std::vector<manual::Item> items;
  const boost::program_options::options_description options = options_of(command);
  for (const auto& option : options.options()) items.push_back({option_term(*option), option_meaning(*option)});
  return items;
}

manual::Page page_of_command(const Command& command) {
  manual::Page page{page_of(command), command.summary, fmt::format("krigtune {} [options]", call_of(command)), {}, {}};
  const std::string details = command.details;
  page.sections.push_back({"DESCRIPTION", details.empty() ? fmt::format("{}.", command.summary) : details});
  page.sections.push_back({"OPTIONS", "", option_items(command)});
  page.sections.push_back({"ENVIRONMENT", precedence_text()});
  page.sections.push_back({"EXIT STATUS", exit_code_text()});
  page.see_also.emplace_back("krigtune");
  for (const Command& other : commands()) {
    if (std::string(other.name) != command.name) page.see_also.push_back(page_of(other));
  }
  return page;
}

manual::Page page_of_program() {
  manual::Page page{"krigtune", "finds the fastest way to train a given model", "krigtune COMMAND [options]", {}, {}};
  page.sections.push_back({"DESCRIPTION", purpose_text()});
  manual::Section described{"COMMANDS"};
  for (const Command& command : commands()) {
    described.items.push_back({call_of(command), fmt::format("{}: {}(1).", command.summary, page_of(command))});
    page.see_also.push_back(page_of(command));
  }
  page.sections.push_back(described);
  page.sections.push_back({"OPTIONS", "", {{"-h, --help", "print the help"}, {"--version", "print the version"}}});
  page.sections.push_back(
      {"ENVIRONMENT",
       precedence_text(),
       {{"KRIGTUNE_CACHE=DIR", "directory for measurements of this machine"},
        {"KRIGTUNE_CUDA_LIBRARIES=DIR:...", "where krigtune-bench-cuda looks for cuBLASLt and NCCL first"},
        {"KRIGTUNE_VECTOR_UNIT=UNIT", "compute with plain, avx2 or avx512 instructions"},
        {"NO_COLOR", "if it is set, nothing is coloured"}}});
  page.sections.push_back({"EXIT STATUS", exit_code_text()});
  page.see_also.emplace_back("krigtune-bench");
  return page;
}

}  // namespace

std::vector<manual::Page> manual_pages() {
  std::vector<manual::Page> pages = {page_of_program()};
  for (const Command& command : commands()) pages.push_back(page_of_command(command));
  return pages;
}

}  // namespace krigtune::cli
