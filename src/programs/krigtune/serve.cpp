// krigtune serve: answers requests of another program over a pipe, so that a proposal costs no process.
#include "programs/krigtune/serve.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ostream>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "core/text.h"
#include "programs/krigtune/served_run.h"
#include "programs/krigtune/this_machine.h"

namespace krigtune::cli {
namespace {

constexpr const char* kSource = "request";

constexpr std::array kMethods = {"open", "ask", "tell", "best", "trials", "predict", "plan", "report"};

std::string as_line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

const char* kind_of(int exit_code) {
  if (exit_code == ExitCode::kBadInput) return "user";
  return exit_code == ExitCode::kEnvironment ? "environment" : "internal";
}

// A message has the form "what is wrong; how to fix it".
Json error_json(const Trouble& trouble) {
  constexpr std::string_view kBetween = "; ";
  const std::size_t end = trouble.message.find(kBetween);
  const bool has_fix = end != std::string::npos;
  return {{"message", trouble.message.substr(0, end)},
          {"fix", has_fix ? trouble.message.substr(end + kBetween.size()) : ""},
          {"kind", kind_of(trouble.exit_code)}};
}

Json id_in(const Json& request) {
  if (!request.is_object()) throw UserError("request: it is not a JSON object", R"(write {"id": 1, "method": "ask"})");
  Json id = request.value("id", Json());
  if (id.is_null() || id.is_string() || id.is_number()) return id;
  throw UserError("request: /id: a number or a text was expected", "write a number");
}

}  // namespace

Server::Server(const Context& context) : context_(context) {}

Server::~Server() = default;

std::string Server::answer(const std::string& text) {
  Json id;
  try {
    const Json request = parse_program_json(text);
    id = id_in(request);
    JsonObject root(request, kSource, "");
    root.find("id");
    const std::string method = root.text("method", "");
    const Json none = Json::object();
    const Json* params = root.find("params");
    root.finish();
    return as_line(
        {{"id", id}, {"result", result_of(method, {params == nullptr ? none : *params, kSource, "/params"})}});
  } catch (const std::exception&) {
    return as_line({{"id", id}, {"error", error_json(current_trouble())}});
  }
}

std::string Server::answer_to_a_long_one() {
  const std::string what = fmt::format("request: a line has more than {} bytes", kMostRequestBytes);
  return as_line({{"id", nullptr}, {"error", error_json({ExitCode::kBadInput, what + "; send less at once"})}});
}

bool Server::has_unwritten() const { return run_ && run_->has_unwritten(); }

void Server::write_files(bool at_end) {
  if (!run_) return;
  try {
    run_->write_files(at_end);
  } catch (const std::exception&) {
    context_.log.warning(fmt::format("the result files are not up to date: {}", current_trouble().message));
  }
}

ServedRun& Server::run() {
  if (!run_)
    throw UserError("request: no run is open", R"(send {"method": "open", "params": {"directory": "runs/job"}})");
  return *run_;
}

Json Server::result_of(const std::string& method, JsonObject params) {
  if (method == "open") return open(std::move(params));
  if (method == "plan") return plan(std::move(params));
  if (method == "ask") return run().ask(std::move(params));
  if (method == "tell") return run().tell(std::move(params));
  if (method == "best") return run().best(params);
  if (method == "trials") return run().trials(std::move(params));
  if (method == "predict") return run().predict(std::move(params));
  if (method == "report") return run().report(std::move(params));
  throw UserError(fmt::format("request: /method: '{}' is not known", method),
                  suggestion(method, {kMethods.begin(), kMethods.end()}));
}

namespace {

// A session is its contents, or the path of its file.
struct SessionInRequest {
  Json json;
  std::filesystem::path file;
};

SessionInRequest session_in(JsonObject& params) {
  const Json* session = params.find("session");
  if (session == nullptr) return {nullptr, {}};
  if (session->is_object()) return {*session, "session"};
  if (!session->is_string()) params.fail("session", "a session or the path of its file was expected", "write {...}");
  const auto file = session->get<std::string>();
  return {load_json(file), file};
}

}  // namespace

Json Server::open(JsonObject params) {
  RunRequest request;
  const Json& directory = params.require("directory");
  if (!directory.is_string() || directory.get<std::string>().empty())
    params.fail("directory", "a path was expected", "name a run directory");
  request.directory = directory.get<std::string>();
  SessionInRequest session = session_in(params);
  request.session = std::move(session.json);
  request.file = std::move(session.file);
  if (params.has("strategy")) {
    request.strategy = search::strategy_kind_from(params.text("strategy", ""),
                                                  fmt::format("{}: {}", kSource, params.pointer("strategy")));
  }
  if (const auto seed = params.optional_integer("seed")) {
    if (*seed < 0) params.fail("seed", "is negative", "write a whole number from 0 on");
    request.seed = static_cast<std::uint64_t>(*seed);
  }
  request.warm_start = params.texts("warm_start");
  request.warm_start_called = "warm_start";
  request.way_to_name_a_session = R"(open it with a "session")";
  params.finish();
  auto opened = std::make_unique<ServedRun>(context_, request);
  write_files(true);
  run_ = std::move(opened);
  return run_->description();
}

Json Server::plan(JsonObject params) {
  const bool rows = params.boolean("rows", false);
  const SessionInRequest named = session_in(params);
  params.finish();
  if (named.json.is_null()) return plan_result(run().session(), run().filter(), rows);
  session::Session session =
      session::read_session(named.json, named.file.string(), std::filesystem::absolute(named.file).parent_path());
  session.file = named.file;
  know_this_machine(context_, session);
  const session::MemoryFilter filter(session);
  Json json = plan_result(session, filter, rows);
  json["warnings"] = session.warnings;
  return json;
}

// Moves the first line of the buffer to line_. Returns false if it has no end yet.
bool RequestReader::take_line() {
  const std::size_t end = buffer_.find('\n', searched_);
  searched_ = end == std::string::npos ? buffer_.size() : 0;
  if (end == std::string::npos) return false;
  line_ = buffer_.substr(0, end);
  buffer_.erase(0, end + 1);
  return true;
}

// Returns false at the end of the file.
bool RequestReader::read_more() {
  std::array<char, 1 << 16> block;
  ssize_t count = -1;
  do {
    count = ::read(file_, block.data(), block.size());
  } while (count < 0 && errno == EINTR);
  if (count <= 0) return false;
  buffer_.append(block.data(), static_cast<std::size_t>(count));
  return true;
}

RequestReader::Event RequestReader::next(int wait_ms) {
  while (true) {
    if (take_line()) {
      const bool is_too_long = skips_ || line_.size() > most_bytes_;
      skips_ = false;
      return is_too_long ? Event::kTooLong : Event::kLine;
    }
    if (buffer_.size() > most_bytes_) {
      skips_ = true;
      buffer_.clear();
      searched_ = 0;
    }
    if (ended_) {
      if (buffer_.empty() && !skips_) return Event::kEnd;
      buffer_ += '\n';
      continue;
    }
    pollfd readable{file_, POLLIN, 0};
    if (::poll(&readable, 1, wait_ms) == 0) return Event::kNothingYet;
    ended_ = !read_more();
  }
}

namespace {

void declare_serve(boost::program_options::options_description& options) {
  options.add_options()("stdio", "read requests from standard input, and write answers to standard output");
}

// Result files can be made from the journal at any time. They are written when no request waits, and in a long series
// of requests now and then.
void serve_requests(const Context& context, Server& server, RequestReader& requests) {
  constexpr int kQuietMs = 100;
  constexpr double kSecondsBetweenFiles = 10.0;
  double written_s = context.console.clock.now_s();
  while (context.console.out.good()) {
    const RequestReader::Event event = requests.next(server.has_unwritten() ? kQuietMs : -1);
    if (event == RequestReader::Event::kEnd) break;
    if (event == RequestReader::Event::kLine)
      context.console.out << server.answer(requests.line()) << '\n' << std::flush;
    if (event == RequestReader::Event::kTooLong)
      context.console.out << Server::answer_to_a_long_one() << '\n' << std::flush;
    const bool is_due = context.console.clock.now_s() - written_s > kSecondsBetweenFiles;
    if (event != RequestReader::Event::kNothingYet && !is_due) continue;
    server.write_files(false);
    written_s = context.console.clock.now_s();
  }
  server.write_files(true);
}

int serve(const Context& context) {
  if (!context.arguments.flag("stdio")) {
    throw UserError("serve: --stdio is missing",
                    "write krigtune serve --stdio, which reads requests from standard input");
  }
  Server server(context);
  RequestReader requests(STDIN_FILENO);
  serve_requests(context, server, requests);
  return ExitCode::kDone;
}

}  // namespace

Command serve_command() {
  return {"serve",
          "",
          "Answers another program's requests to ask and tell",
          "Each line of standard input is a request, and each line of standard output is its answer:\n\n"
          "  {\"id\": 1, \"method\": \"ask\", \"params\": {\"count\": 2}}\n"
          "  {\"id\":1,\"result\":{\"trials\":[...]}}\n\n"
          "The methods are open, ask, tell, best, trials, predict, plan and report. The run directory stays open, so "
          "that a request costs no process. Every result is in its journal before the answer. Other processes may "
          "ask, tell and tune in the same directory. The server ends at the end of its input. docs/serve.md describes "
          "the protocol.",
          declare_serve,
          serve};
}

}  // namespace krigtune::cli
