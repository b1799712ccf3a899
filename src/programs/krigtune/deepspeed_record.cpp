#include "programs/krigtune/deepspeed_record.h"

#include "core/files.h"

namespace krigtune::cli {
namespace {

Json job_record(const deepspeed::DsSessionInputs& inputs) {
  return {{"command", inputs.command->argv},
          {"directory", std::filesystem::absolute(inputs.directory).lexically_normal().string()},
          {"ds_config", inputs.config}};
}

}  // namespace

Json recorded_answer(const deepspeed::DsSessionInputs& inputs, const std::filesystem::path& file,
                     JobLaunches launches) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return {};
  Json record = Json::parse(read_text(file), nullptr, false);
  if (!record.is_object()) return {};
  Json asked = record.value("job", Json::object());
  Json now = job_record(inputs);
  if (launches == JobLaunches::kNone) asked["ds_config"] = now["ds_config"];
  return asked == now ? record : Json();
}

Json record_answer(const deepspeed::DsSessionInputs& inputs, const std::filesystem::path& file, Json answer) {
  answer["job"] = job_record(inputs);
  write_atomically(file, answer.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  return answer;
}

}  // namespace krigtune::cli
