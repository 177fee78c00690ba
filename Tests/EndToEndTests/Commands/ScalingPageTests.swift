#if PostgreSQL && os(Linux)
import AssentCore
import AssentOTP
import AssentPeers
import Foundation
import StoreTesting
import TestSupport
import Testing

/// The statements, the settings and the steps of docs/scaling.md, with the bank's file on free ports.
@Suite(
    "PostgreSQL, as docs/scaling.md shows it",
    .enabled(if: !TestDatabase.isPostgreSQL, "it says itself which database each server has"))
struct ScalingPageTests {
    /// An operator with a home of their own, and a database that the page's statements have made.
    private struct Operator {
        let person: Program
        let page: DocumentedPage
        private let server: PostgreSQLServer
        /// The database's name, and its role's.
        private let name: String

        init(below directory: String) async throws {
            person = try Program(below: directory, client: "")
            page = try DocumentedPage("docs/scaling.md")
            server = try await PostgreSQLServer.shared()
            name = "page\(SystemRandom().uuid().prefix(8).lowercased())"
            let password = "a long password"
            let block = try #require(page.blocks("sql", under: "The database").first).text
            let statements = block.replacing("assent", with: name).replacing("…", with: password)
                .split(separator: ";").map { $0.trimmingCharacters(in: .whitespacesAndNewlines) }
            try #require(statements.count { !$0.isEmpty } == 3)
            // A database cannot be made together with something else.
            for statement in statements where !statement.isEmpty {
                try await server.offPool { try $0.sql(statement) }
            }
            try person.keep(password, in: person.home + "/database-password")
        }

        /// The bank's file, with a data directory of its own.
        func write(_ file: String, data: String, settings: String = "") throws {
            let example = try String(contentsOfFile: World.configurationFile, encoding: .utf8)
            let text = example.replacing("8443", with: "0").replacing("8444", with: "0")
                .replacing("dataDirectory: .assent", with: "dataDirectory: \(data)")
            try Data("\(text)\n\(settings)\n".utf8).write(to: URL(filePath: person.home + "/" + file))
        }

        /// The settings of the page, for this database and with this master key.
        func settings(key: String) throws -> String {
            var text = try #require(page.blocks("yaml", under: "The settings").first).text
            let changes = [
                ("/etc/assent/master.key", key), ("[db1.bank.example, db2.bank.example]", "[\(server.directory.path)]"),
                ("database: assent\n", "database: \(name)\n"), ("user: assent\n", "user: \(name)\n"),
                ("/etc/assent/database-password", person.home + "/database-password"),
                // It is reached over a socket.
                ("    authority: /etc/assent/database-ca.pem", ""),
            ]
            for (old, new) in changes {
                try #require(text.contains(old), "\(old)")
                text = text.replacing(old, with: new)
            }
            return text
        }

        /// Types a line that must do what it says.
        @discardableResult
        func type(_ line: String, _ answers: [String] = []) async throws -> Program.Result {
            let result = try await person.type(line, answers)
            #expect(result.status == 0, "\(line): \(result)")
            return result
        }

        /// Does something beside `assent serve`, which must end as it should.
        func serve(_ file: String, _ body: (Program.Running) async throws -> Void) async throws {
            let served = try await person.beside("assent serve --config \(file)", body)
            #expect(served.status == 0, "\(served.errors)")
        }
    }

    private static func run(_ body: (Operator) async throws -> Void) async throws {
        let directory = try TemporaryDirectory()
        defer { withExtendedLifetime(directory) {} }
        try await body(Operator(below: directory.path("of-operator")))
    }

    /// What a server shows once of the user that it has made.
    private static func account(_ server: Program.Running) async throws -> (password: String, seed: String) {
        let password = try await server.value(of: "password")
        let seed = try await server.value(of: "TOTP seed")
        try await ready(server)
        return (password, seed)
    }

    /// Waits until a server has written the file of its clients.
    private static func ready(_ server: Program.Running) async throws {
        _ = try await server.line(with: "assent login --config ")
    }

    /// What signs in. On a busy machine it is later when the program asks: who is told that a code is wrong types the
    /// next one.
    private static func answers(_ account: (password: String, seed: String)) throws -> [String] {
        let totp = try TOTP(secret: Secret(bytes: try #require(Base32.decode(account.seed))))
        let codes = (0..<3).map { totp.code(at: Date(timeIntervalSinceNow: TimeInterval(30 * $0))) }
        return ["ana", account.password] + codes
    }

    @Test("On the database that its statements make, with its settings, two nodes have the same users")
    func nodes() async throws {
        try await Self.run { operating in
            let key = operating.page.names(under: "The settings").first { $0.contains("/dev/urandom") }
            try await operating.type(try #require(key))
            let settings = try operating.settings(key: "master.key")
            for node in ["one", "two"] { try operating.write("\(node).yaml", data: node, settings: settings) }
            try await operating.type("assent doctor --config one.yaml")
            try await operating.serve("one.yaml") { first in
                let account = try await Self.account(first)
                try await operating.serve("two.yaml") { second in
                    try await Self.ready(second)
                    try await operating.type("assent login --config two/client.yaml", Self.answers(account))
                    var looked = try await operating.type("assent doctor --config two.yaml")
                    // A node says that it is there just after it has begun to answer.
                    while looked.output.components(separatedBy: ", last seen ").count < 3 {
                        looked = try await operating.type("assent doctor --config two.yaml")
                    }
                    let nodes = looked.output.components(separatedBy: ", decides by the policies of this file")
                    #expect(nodes.count == 3, "\(looked.output)")
                }
            }
        }
    }

    @Test("From one file to PostgreSQL by its steps: the user signs in at the new server as at the old one")
    func copy() async throws {
        try await Self.run { operating in
            let heading = "From one file to PostgreSQL"
            let names = operating.page.names(under: heading)
            let copying = operating.page.blocks("console", under: heading).flatMap(\.commands)
            try #require(copying == ["assent database copy --config assent.yaml --to assent-postgresql.yaml"])
            try operating.write("assent.yaml", data: "data")
            try operating.write(
                "assent-postgresql.yaml", data: "data", settings: operating.settings(key: "data/master.key"))
            var account = (password: "", seed: "")
            try await operating.serve("assent.yaml") { account = try await Self.account($0) }
            for start in ["assent doctor --config assent-postgresql.yaml", "assent database migrate "] {
                try await operating.type(try #require(names.first { $0.hasPrefix(start) }, "\(start)"))
            }
            let copied = try await operating.type(copying[0])
            #expect(copied.output.contains("are the same on both sides"), "\(copied.output)")
            try await operating.serve("assent-postgresql.yaml") { server in
                try await Self.ready(server)
                try await operating.type("assent login --config data/client.yaml", Self.answers(account))
            }
        }
    }
}
#endif
