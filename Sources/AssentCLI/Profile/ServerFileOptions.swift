import ArgumentParser
import Assent

/// What commands take that work on the data of a stopped server.
struct ServerFileOptions: ParsableArguments {
    @Option(name: .shortAndLong, help: "The server's file.", completion: .file(extensions: ["yaml", "yml"]))
    var config: String

    @Flag(name: .long, help: "Print the result as JSON.")
    var json = false

    /// Runs `work` on the file, and prints what came of it.
    func run<Result>(
        _ work: (_ file: String) async throws -> Result, text: (Result) -> String, json: (Result) -> JSONValue
    ) async throws {
        let console = Console(json: self.json)
        try await Outcome.run(console) {
            let result = try await work(config)
            console.report(json(result), text(result))
        }
    }
}
