import AssentPeers
import Foundation
import StoreTesting
import TestSupport
import Testing

@Suite("The scripts of examples", .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"))
struct ExampleScriptTests {
    @Test(
        "An example's script, run as a person runs it, does what the example's page says that it prints",
        arguments: ["edge", "service"])
    func script(name: String) async throws {
        let example = World.package.appending(path: "Examples/\(name)")
        let page = try String(contentsOf: example.appending(path: "README.md"), encoding: .utf8)
        let promised = try #require(page.firstMatch(of: /```text\n((?s).*?)\n```/)).1
        let running = try Program.Running(
            [
                "--kill-after=30", "\(Patience.seconds)", "/bin/bash", example.appending(path: "run.sh").path,
                BuiltProgram.beside("assent").deletingLastPathComponent().path,
            ],
            environment: [
                "PATH": "/usr/bin:/bin", "ASSENT_EXAMPLE_LIMIT": "\(Patience.seconds)",
                "ASSENT_LEAST_SECONDS": "\(Patience.seconds)",
            ])
        let result = await running.result()
        #expect(result.status == 0 && result.output == promised, "\(result.output)\(result.errors)")
    }
}
