#include <gtest/gtest.h>

#include <sstream>

#include "cli/cli_fixtures.h"
#include "programs/krigtune/command.h"

namespace krigtune {
namespace {

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const cli::Command& command : cli::commands()) names.emplace_back(command.name);
  return names;
}

// docs/cli.md is made from the same declarations as the help: `test_cli_help --write-reference FILE` writes it.
TEST(Help, IsWhatTheDocumentationSaysAndNothingElse) {
  EXPECT_EQ(read_text(KRIGTUNE_CLI_REFERENCE), cli::command_line_reference())
      << "rewrite it: test_cli_help --write-reference docs/cli.md";
}

TEST(Help, OfEveryCommandStandsInTheDocumentation) {
  const std::string reference = read_text(KRIGTUNE_CLI_REFERENCE);
  EXPECT_NE(reference.find(run_krigtune({"--help"}).out), std::string::npos);
  for (const std::string& command : command_names()) {
    const Said said = run_krigtune({command, "--help-all"});
    EXPECT_EQ(said.code, 0);
    EXPECT_EQ(said.err, "");
    EXPECT_NE(reference.find("## krigtune " + command + "\n\n```text\n" + said.out + "```\n"), std::string::npos)
        << command;
  }
}

TEST(Help, DocumentsEveryOptionThatIsAccepted) {
  for (const std::string& command : command_names()) {
    const std::string help = run_krigtune({command, "--help"}).out;
    for (const char* option : {"--json", "--quiet", "--verbose", "--log-file", "--help"}) {
      EXPECT_NE(help.find(option), std::string::npos) << command << " " << option;
    }
  }
}

constexpr std::size_t kScreenColumns = 80;
constexpr std::size_t kScreenLines = 40;

void expect_narrow(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), kScreenColumns) << line;
}

TEST(Help, FitsOneScreenOfEightyColumnsAndFortyLines) {
  std::vector<std::string> texts = {run_krigtune({"--help"}).out};
  for (const std::string& command : command_names()) texts.push_back(run_krigtune({command, "--help"}).out);
  for (const std::string& text : texts) {
    expect_narrow(text);
    EXPECT_LE(lines_in(text), kScreenLines) << text;
  }
}

// What --help leaves out is in --help-all, and --help says so.
TEST(HelpAll, ExplainsEveryOptionThatExists) {
  for (const cli::Command& command : cli::commands()) {
    const std::string usual = run_krigtune({command.name, "--help"}).out;
    const std::string all = run_krigtune({command.name, "--help-all"}).out;
    expect_narrow(all);
    EXPECT_EQ(all == usual, command.rare_options.empty()) << command.name;
    EXPECT_EQ(usual.find("--help-all explains") == std::string::npos, command.rare_options.empty()) << command.name;
    for (const std::string& rare : command.rare_options) {
      EXPECT_NE(all.find("      --" + rare), std::string::npos) << command.name << " " << rare;
      EXPECT_EQ(usual.find("      --" + rare), std::string::npos) << command.name << " " << rare;
    }
  }
  EXPECT_EQ(run_krigtune({"help", "tune", "--all"}).out, run_krigtune({"tune", "--help-all"}).out);
}

TEST(Help, IsFoundAsACommandToo) {
  EXPECT_EQ(run_krigtune({"help"}).out, run_krigtune({"--help"}).out);
  for (const std::string& command : command_names()) {
    EXPECT_EQ(run_krigtune({"help", command}).out, run_krigtune({command, "--help"}).out) << command;
  }
  const Said said = run_krigtune({"help", "tnue"});
  EXPECT_EQ(said.code, 2);
  EXPECT_EQ(said.err, "krigtune: help: unknown command 'tnue'; did you mean 'tune'?\n");
}

TEST(Version, IsOneLineOnStdout) {
  const Said said = run_krigtune({"--version"});
  EXPECT_EQ(said.code, 0);
  EXPECT_EQ(said.out.rfind("krigtune ", 0), 0U);
  EXPECT_EQ(lines_in(said.out), 1U);
}

}  // namespace
}  // namespace krigtune

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc == 3 && std::string(argv[1]) == "--write-reference") {
    krigtune::write_atomically(argv[2], krigtune::cli::command_line_reference());
    return 0;
  }
  return RUN_ALL_TESTS();
}
