import AssentCore
import AssentOTP
import AssentPeers
import Foundation
import StoreTesting
import TestSupport
import Testing

/// Each test starts `assent serve` as somebody does who follows a page, on free ports, and does what comes behind it.
@Suite(
    "Starting a server by the lines of the pages",
    .enabled(if: !TestDatabase.isPostgreSQL, "the files of these pages keep the data in SQLite"))
struct FirstStartTests {
    private static let transfer = #""amount":"200.00""#

    /// Somebody with a home of their own.
    private static func run(_ body: (Program) async throws -> Void) async throws {
        let directory = try TemporaryDirectory()
        defer { withExtendedLifetime(directory) {} }
        try await body(Program(below: directory.path("of-operator"), client: ""))
    }

    /// A file of a page with changes, each of which must be possible.
    private static func edited(_ text: String, _ changes: [(String, String)]) throws -> String {
        var text = text
        for (old, new) in changes {
            try #require(text.contains(old), "\(old)")
            text = text.replacing(old, with: new)
        }
        return text
    }

    private static func write(_ text: String, to path: String) throws {
        try Data(text.utf8).write(to: URL(filePath: path))
    }

    /// The code of now, or of so many steps later, and the next ones: on a busy machine it is later when the program
    /// asks, and who is told that a code is wrong types the next one.
    private static func codes(_ seed: String, later steps: Int = 0) throws -> [String] {
        let totp = try TOTP(secret: Secret(bytes: try #require(Base32.decode(seed))))
        return (steps..<steps + 3).map { totp.code(at: Date(timeIntervalSinceNow: TimeInterval(30 * $0))) }
    }

    /// Where a server says that its gateway is.
    private static func gateway(of server: Program.Running) async throws -> String {
        let line = try await server.line(with: "Gateway:  ")
        return String(try #require(line.split(separator: " ").last))
    }

    @Test("By hand: the bank and the server of docs/operating.md, in two terminals, a sign-in and a payment")
    func byHand() async throws {
        let page = try DocumentedPage("docs/operating.md")
        let blocks = page.blocks("console", under: "Try it by hand").map(\.commands)
        try #require(blocks.map(\.count) == [2, 2])
        let words = try #require(ShellLine(blocks[0][0]).commands.first)
        let setting = try #require(words.first).split(separator: "=").map(String.init)
        try #require(words.count == 2 && setting.count == 2)
        try await Self.run { person in
            let place = person.home
            let files = FileManager.default
            for directory in ["/.build", "/Examples/bank"] {
                try files.createDirectory(atPath: place + directory, withIntermediateDirectories: true)
            }
            try files.createSymbolicLink(
                atPath: place + "/.build/debug",
                withDestinationPath: BuiltProgram.beside("assent").deletingLastPathComponent().path)
            let environment = [
                setting[0]: setting[1].replacing("/tmp/", with: place + "/"), "BANK_PORT": "0",
                "BANK_ENDS_WITH_INPUT": "1",
            ]
            try await person.beside(words[1], environment: environment) { bank in
                let listening = try await bank.line(with: "listening on 127.0.0.1:")
                let port = String(try #require(listening.split(separator: ":").last))
                let example = try String(contentsOfFile: World.configurationFile, encoding: .utf8)
                try Self.write(
                    Self.edited(example, [("8443", "0"), ("8444", "0"), ("9080", port)]),
                    to: place + "/Examples/bank/assent.yaml")
                let served = try await person.beside(blocks[0][1]) { server in
                    try await Self.pay(by: blocks[1], person, server)
                }
                #expect(served.status == 0, "\(served.errors)")
            }
        }
    }

    /// Signs in and pays by the lines of a page, with what the server has shown.
    private static func pay(by lines: [String], _ person: Program, _ server: Program.Running) async throws {
        let gateway = try await gateway(of: server)
        let password = try await server.value(of: "password")
        let seed = try await server.value(of: "TOTP seed")
        _ = try await server.line(with: "assent login --config ")
        let login = try await person.type(lines[0], ["ana", password] + codes(seed))
        #expect(login.status == 0, "\(login)")
        // The code of now was used; the server takes the next one already.
        let paid = try await person.type(
            lines[1].replacing("https://localhost:8444", with: gateway), ["1"] + codes(seed, later: 1))
        #expect(paid.status == 0 && paid.output.contains(transfer), "\(paid)")
    }

    @Test("The article about the first server: its file, its lines, and what the gateway answers before and after")
    func article() async throws {
        let page = try DocumentedPage("Sources/AssentServer/AssentServer.docc/FirstServer.md")
        let file = try #require(page.blocks("yaml", under: "1. Write the file").first).text
        let count = file.components(separatedBy: "\n").count
        #expect(page.text.contains("a file of \(count) lines"), "\(count)")
        let headings = ["2. Look, then start", "3. Protect something", "4. Sign in and call it"]
        let lines = headings.map { page.blocks("console", under: $0).flatMap(\.commands) }
        try #require(lines.map(\.count) == [2, 1, 2])
        try await Self.run { person in
            // Python keeps its words back where nobody sits at a terminal.
            let environment = ["PYTHONUNBUFFERED": "1"]
            let serve = lines[1][0].replacing(" 9080 ", with: " 0 ")
            try await person.beside(serve, environment: environment) { service in
                let listening = try await service.line(with: "Serving HTTP on ")
                let port = String(try #require(listening.firstMatch(of: /port ([0-9]+)/)).output.1)
                let changes = [
                    ("https://localhost:8443/am\n", "https://localhost:0/am\nlisten: {port: 0}\n"),
                    ("https://localhost:8444\n", "https://localhost:0\n  port: 0\n"), ("9080", port),
                ]
                try Self.write(Self.edited(file, changes), to: person.home + "/assent.yaml")
                let looked = try await person.type(lines[0][0])
                #expect(looked.status == 0 && !looked.output.contains("–"), "\(looked)")
                let served = try await person.beside(lines[0][1]) { server in
                    try await Self.call(by: lines[2], person, server)
                }
                #expect(served.status == 0, "\(served.errors)")
            }
        }
    }

    /// Signs in and calls the service by the lines of the article.
    private static func call(by lines: [String], _ person: Program, _ server: Program.Running) async throws {
        let gateway = try await gateway(of: server)
        let password = try await server.value(of: "password")
        _ = try await server.line(with: "assent login --config ")
        let request = lines[1].replacing("https://localhost:8444", with: gateway)
        let nobody = "assent request --as nobody --config .assent/client.yaml "
        let early = try await person.type(request.replacing("assent request ", with: nobody))
        #expect(early.status == 1 && early.errors.contains("The server answered 401"), "\(early)")
        let login = try await person.type(lines[0], ["ana", password])
        #expect(login.status == 0, "\(login)")
        let listing = try await person.type(request)
        #expect(listing.status == 0 && listing.output.contains("Directory listing"), "\(listing)")
        let posted = try await person.type(request.replacing(" GET ", with: " POST "))
        #expect(posted.status == 2 && posted.errors.contains("The server answered 403"), "\(posted)")
    }

    @Test("In production: each step of docs/operating.md, up to the backup and the first administrator")
    func production() async throws {
        let page = try DocumentedPage("docs/operating.md")
        let words = page.names(under: "First start")
        // What is changed below is what the page says, and nothing else.
        let changed = Array(words.prefix { $0 != "assent admin hash-password" })
        let expected = [
            "Examples/bank/assent.yaml", "development: true", "passwordCost", "publicURL", "listen", "dataDirectory",
            "tls", "gateway.publicURL", "resources", "localhost", "passwordHash", "credentials",
        ]
        #expect(changed == expected)
        func line(_ start: String) throws -> String { try #require(words.first { $0.hasPrefix(start) }, "\(start)") }
        let backup = try #require(page.blocks("console", under: "Backup and restore").first).commands
        let administrator = try #require(page.blocks("console", under: "The first administrator").first).commands
        try #require(backup.count == 1 && administrator.count == 2)
        try await Self.run { person in
            try await Self.makeCertificate(in: person)
            let hash = try await person.type(line("assent admin hash-password"), [Self.password, Self.password])
            try #require(hash.status == 0, "\(hash.errors)")
            let made = try await person.type(line("(umask "))
            #expect(made.status == 0 && words.contains("totpSeedFile"), "\(made.errors)")
            try Self.write(try Self.productionFile(hash.output), to: person.home + "/assent.yaml")
            let looked = try await person.type(line("assent doctor "))
            #expect(looked.status == 0 && !looked.output.contains("✗"), "\(looked.output)")
            let served = try await person.beside(line("assent serve ")) { server in
                _ = try await server.line(with: "assent admin bootstrap --token-file ")
                _ = try await server.line(with: "assent login --config ")
                let kept = person.home + "/backup"
                try FileManager.default.createDirectory(atPath: kept, withIntermediateDirectories: false)
                let copied = try await person.type(backup[0].replacing("/backup/", with: kept + "/"))
                #expect(copied.status == 0, "\(copied.errors)")
                for file in ["/backup/assent.backup", "/data/master.key"] {
                    #expect(FileManager.default.fileExists(atPath: person.home + file))
                }
                try await Self.administer(by: administrator, person)
            }
            #expect(served.status == 0, "\(served.errors)")
        }
    }

    private static let password = "correct horse battery"

    /// The bank's file with the changes that the page asks for.
    private static func productionFile(_ hash: String) throws -> String {
        let example = try String(contentsOfFile: World.configurationFile, encoding: .utf8)
        return try edited(
            example,
            [
                ("\ndevelopment: true\n", "\n"), ("\npasswordCost: 16384\n", "\n"),
                ("publicURL: https://localhost:8443/am", "publicURL: https://localhost:0/am"),
                ("listen: {host: 127.0.0.1, port: 8443}", "listen: {host: 127.0.0.1, port: 0}"),
                (
                    "dataDirectory: .assent",
                    "dataDirectory: data\ntls: {certificate: certificate.pem, privateKey: certificate.key}"
                ),
                ("publicURL: https://localhost:8444\n  port: 8444", "publicURL: https://localhost:0\n  port: 0"),
                ("credentials: generated", "passwordHash: \(hash)\n        totpSeedFile: ana.seed"),
            ])
    }

    /// A certificate for localhost, its chain and its key, and the authority that has signed it, as an operator has
    /// them.
    private static func makeCertificate(in person: Program) async throws {
        let made = try await person.type(
            """
            umask 077; set -e
            openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout authority.key \
                -out authority.pem -days 90 -subj '/CN=An authority' -addext basicConstraints=critical,CA:TRUE \
                -addext keyUsage=critical,keyCertSign
            openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout certificate.key \
                -out certificate.csr -subj /CN=localhost
            printf '%s\\n' subjectAltName=DNS:localhost extendedKeyUsage=serverAuth \
                keyUsage=critical,digitalSignature >certificate.ext
            openssl x509 -req -in certificate.csr -CA authority.pem -CAkey authority.key -CAcreateserial -days 90 \
                -extfile certificate.ext -out leaf.pem
            cat leaf.pem authority.pem >certificate.pem
            """)
        try #require(made.status == 0, "\(made.errors)")
    }

    /// Signs in with the client's file, to which the operator has added the authority, and becomes administrator.
    private static func administer(by lines: [String], _ person: Program) async throws {
        let file = person.home + "/data/client.yaml"
        let written = try String(contentsOfFile: file, encoding: .utf8)
        try write("\(written)authority: \(person.home)/authority.pem\n", to: file)
        let seed = try String(contentsOfFile: person.home + "/ana.seed", encoding: .utf8)
            .trimmingCharacters(in: .newlines)
        let here = lines.map { $0.replacing("/var/lib/assent/", with: person.home + "/data/") }
        let login = try await person.type(here[0], ["ana", password] + codes(seed))
        #expect(login.status == 0, "\(login)")
        let became = try await person.type(here[1])
        #expect(became.status == 0, "\(became)")
        #expect(!FileManager.default.fileExists(atPath: person.home + "/data/bootstrap-token"))
        let users = try await person.type("assent users list")
        #expect(users.status == 0 && users.output.contains("admin"), "\(users)")
    }
}
