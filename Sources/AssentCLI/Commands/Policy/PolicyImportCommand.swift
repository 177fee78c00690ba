import ArgumentParser
import Assent
import AssentCore
import AssentEngine
import Foundation

/// `assent policy import`
struct PolicyImportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Turn AM's list of policies into policySets for a server's file.",
        discussion: """
            The export is what AM answers to GET policies?_queryFilter=true; or an object that has this answer under \
            policies, and that of resourcetypes under resourcetypes. The YAML goes to standard output. Standard error \
            names all that cannot be kept; a policy that would mean something else is left out. Exit status: 0 \
            everything is kept, 1 something is not.
            """)

    @Option(help: "The realm that the policies are for, for example /alpha. Default: the top realm.")
    var realm = "/"

    @Flag(name: .long, help: "Print yaml, policies (how many) and notes as JSON.")
    var json = false

    @Argument(help: "The export, in JSON.", completion: .file(extensions: ["json"]))
    var file: String

    /// The most that is read.
    private static let limit = 16 << 20

    func run() async throws {
        let console = Console(json: json)
        var isWhole = true
        try await Outcome.run(console) {
            let result = try imported()
            isWhole = result.notes.isEmpty
            if console.json {
                console.emit([
                    "yaml": .string(result.yaml), "policies": .integer(result.count),
                    "notes": .array(result.notes.map { .string($0) }),
                ])
            } else {
                console.say(result.yaml)
                for note in result.notes { console.warn(DisplayText.escapedForTerminal(note)) }
            }
        }
        if !isWhole { throw ExitCode(Outcome.Status.failed.rawValue) }
    }

    private func imported() throws -> PolicyImport {
        let data: Data
        do {
            data = try Data(contentsOf: URL(fileURLWithPath: file))
        } catch {
            throw CommandFailure.unreadable(file, error, "Name the file that has AM's answer.")
        }
        guard data.count <= Self.limit else { throw CommandFailure("\(file) is larger than \(Self.limit >> 20) MiB.") }
        let json: JSONValue
        do {
            json = try JSONValue.parse(Array(data), limits: JSONLimits(bytes: Self.limit))
        } catch {
            throw CommandFailure("\(file) is not JSON: \(error.explanation)")
        }
        do {
            return try PolicyImport(json, realm: realm.hasPrefix("/") ? realm : "/" + realm)
        } catch {
            throw CommandFailure("\(file): \(error.path) \(error.message).")
        }
    }
}
