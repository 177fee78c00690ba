#if os(Linux)
import AssentPeers
import Foundation
import TestSupport
import Testing

@testable import AssentCLI

/// The operator of an app does what the pages say, line by line, with the draft that docs/trust-file.md has.
@Suite("Trust files, as the pages show them")
struct TrustFilePageTests {
    private static let page = "docs/trust-file.md"

    /// The draft, whose days have not come yet.
    private static func draft() throws -> String {
        let block = try #require(DocumentedPage(page).blocks("yaml", under: "On the command line").first).text
        let days = [400, 800].map {
            Date(timeIntervalSinceNow: TimeInterval($0 * 86_400)).formatted(.iso8601.year().month().day())
        }
        let shown = block.matches(of: /20[0-9]{2}-[0-9]{2}-[0-9]{2}/).map { String($0.output) }
        try #require(shown.count == days.count)
        return zip(shown, days).reduce(block) { $0.replacing($1.0, with: $1.1) }
    }

    @Test(
        "The draft is signed, checked and rehearsed by the lines of the page",
        arguments: [(page, "On the command line"), ("docs/command-line.md", "Say whom an app trusts")])
    func lines(page: String, heading: String) throws {
        let directory = try TemporaryDirectory()
        defer { withExtendedLifetime(directory) {} }
        try Data(Self.draft().utf8).write(to: URL(filePath: directory.path("trust.yaml")))
        let commands = try #require(DocumentedPage(page).blocks("console", under: heading).first).commands
        #expect(commands.count >= 6)
        let programs = BuiltProgram.beside("assent").deletingLastPathComponent().path
        for command in commands {
            let done = try FinishedProcess.run(
                "/bin/sh", ["-euc", command],
                environment: ["PATH": "\(programs):/usr/bin:/bin", "HOME": directory.path("")],
                directory: directory.path(""))
            #expect(done.status == 0, "\(command): \(done.text)\(done.complaints)")
            if command.contains(" sign ") {
                #expect(done.text.contains("versions/1 is version 1 for bank-app/linux/production"), "\(done.text)")
            }
            if command.contains(" rehearse ") {
                #expect(done.text.components(separatedBy: "signs version 2, and apps take it").count == 3)
            }
        }
    }
}
#endif
