#if os(Linux)
import AssentPeers
import AssentServer
import Foundation
import TestSupport
import Testing

@testable import AssentCLI

/// What the pages have for people to put into files: each block of YAML is read by what reads it in earnest, which
/// refuses keys that it does not know.
@Suite("The files that the pages show")
struct PageFileTests {
    /// A block of YAML, and what it is a part of.
    struct Example: Sendable, CustomTestStringConvertible {
        enum Kind: Sendable {
            case server
            case gateway
            case client
            /// What guards an app's vault.
            case keys
        }

        let page: String
        let heading: String
        /// Which one it is under its heading, from 1.
        let number: Int
        let kind: Kind
        /// The whole file, in which a line `<block>` stands for it.
        let file: String
        /// What its placeholders stand for, and what the page takes for granted in it.
        let edits: [(String, String)]

        init(
            _ page: String, _ heading: String, _ number: Int = 1, _ kind: Kind = .server, in file: String,
            _ edits: [(String, String)] = []
        ) {
            (self.page, self.heading, self.number) = ("docs/\(page).md", heading, number)
            (self.kind, self.file, self.edits) = (kind, file, edits)
        }

        var name: String { PageFileTests.name(page, heading, number) }
        var testDescription: String { name }

        /// The whole file.
        func text() throws -> String {
            let found = try DocumentedPage(page).blocks("yaml", under: heading)
            var block = try #require(found.dropFirst(number - 1).first).text
            for (old, new) in edits {
                try #require(block.contains(old), "\(old)")
                block = block.replacing(old, with: new)
            }
            let line = try #require(file.split(separator: "\n").first { $0.hasSuffix("<block>") })
            let indent = String(line.dropLast("<block>".count))
            let lines = block.components(separatedBy: "\n").map { $0.isEmpty ? "" : indent + $0 }
            return file.replacing(String(line), with: lines.joined(separator: "\n"))
        }
    }

    private static func name(_ page: String, _ heading: String, _ number: Int) -> String {
        "\(page)#\(heading)\(number > 1 ? " \(number)" : "")"
    }

    // MARK: - Whole files

    private static let head = """
        development: true
        publicURL: https://am.bank.example/am
        dataDirectory: data

        """
    private static let top = head + "realms: {alpha: {}}\n<block>\n"
    private static let realms = head + "<block>\n"
    private static let realm = head + "realms:\n  alpha:\n    <block>\n"
    private static let app =
        head + """
            realms:
              alpha:
                apps:
                  pay:
                    redirectURIs: ["http://127.0.0.1/callback"]
                    <block>

            """

    /// A realm with a sign-in, and with an approval of one transfer.
    private static let journeys =
        head + """
            realms:
              alpha:
                journeys:
                  Strong:
                    entry: credentials
                    authLevel: 1
                    nodes:
                      credentials:
                        type: PageNode
                        config: {nodes: [{type: UsernameCollectorNode}, {type: PasswordCollectorNode}]}
                        outcomes: {outcome: check}
                      check: {type: DataStoreDecisionNode, outcomes: {"true": success, "false": failure}}
                  ConfirmTransfer:
                    entry: approve
                    transactionalOnly: true
                    nodes:
                      approve: {type: TransactionApprovalNode, outcomes: {approve: success, decline: failure}}

            """
    private static let realmWithJourneys = journeys + "    <block>\n"
    private static let policy =
        journeys + """
                policySets:
                  bank:
                    policies:
                      - name: pay
                        resources: ["https://api.bank.example:443/transfers"]
                        actionValues: {POST: true}
                        subject: {type: AuthenticatedUsers}
                        bind: [method, query, body]

            """
    private static let display =
        policy + "            condition: {type: Transaction, strategySpecifier: ConfirmTransfer, ttl: 180}\n"
        + "            <block>\n"
    private static let condition = policy + "            <block>\n"

    /// A gateway without routes, before policies of these sets.
    private static func gateway(_ sets: String = "bank: {policies: []}") -> String {
        head + """
            realms: {alpha: {policySets: {\(sets)}}}
            gateway:
              publicURL: https://pay.bank.example
              routes:

            """
    }

    private static let route =
        gateway() + """
                - name: bank
                  upstream: https://10.0.0.5:9443
                  realm: alpha
                  policySet: bank
                  <block>

            """

    private static let client = """
        server: https://am.bank.example/am
        realm: /alpha
        client: {id: bank-app, redirectURI: "http://127.0.0.1/callback", scopes: [openid]}
        <block>

        """

    // MARK: - Blocks

    private static let pin = "sha256/AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
    private static let backup = "sha256/AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA="
    private static let quotedPins = (#"["sha256/…", "sha256/…"]"#, "[\"\(pin)\", \"\(backup)\"]")
    private static let key =
        "{kty: EC, crv: P-256, x: f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU, "
        + "y: x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0}"

    static let servers: [Example] = [
        Example("device-configuration", "At the server", in: realms),
        Example("journeys-and-policies", "Journeys", in: realm),
        Example("journeys-and-policies", "Policy sets", in: realmWithJourneys),
        Example("journeys-and-policies", "What the user sees", in: display),
        Example("journeys-and-policies", "Usual networks", in: condition),
        Example("operating", "Clients with a key", in: realm),
        Example("operating", "Clients with a key", 2, in: top),
        Example("operating", "How users signed in", in: realmWithJourneys),
        Example("operating", "Transaction signing", in: realm),
        Example("operating", "Messages to a push service", in: top),
        Example("operating", "Several services", in: gateway() + "    <block>\n"),
        Example(
            "operating", "Actions",
            in: gateway("bank: {actions: [GET, POST, transfer, approve], policies: []}") + "    <block>\n"),
        Example("operating", "TLS to services", in: route, [quotedPins]),
        Example("operating", "Who calls, signed", in: route),
        Example("operating", "WebSockets", in: gateway("live: {policies: []}") + "    <block>\n"),
        Example("operating", "A gateway elsewhere", 1, .gateway, in: "<block>\n", [quotedPins]),
        Example(
            "operating", "A gateway elsewhere", 2, in: realms,
            [
                ("{kty: EC, …}", key),
                ("    clients:\n", "    policySets: {bank: {policies: []}}\n    clients:\n"),
            ]),
        Example("operating", "Name, logo and languages", in: top),
        Example("payload-encryption", "The server's switch", in: app),
        Example("registration", "The file", in: realms),
        Example("scaling", "The settings", in: top),
        Example(
            "sender-constraints", "Routes that take nothing else",
            in: head + "realms: {alpha: {policySets: {bank: {policies: []}}}}\n<block>\n",
            [("gateway:\n", "gateway:\n  publicURL: https://pay.bank.example\n")]),
        Example(
            "transaction-signing", "Creation", in: realm, [("signing:\n", "signing:\n  name: Bank of Example\n")]),
        Example("trust-file", "Served by assent serve", in: top),
        Example(
            "web-apps", "The list", in: realms,
            [
                ("    clients:\n", "    policySets: {bank: {policies: []}}\n    clients:\n"),
                ("      shop:\n", "      shop:\n        redirectURIs: [\"https://shop.bank.example/callback\"]\n"),
                ("gateway:\n", "gateway:\n  publicURL: https://pay.bank.example\n"),
                (
                    "    - name: bank\n",
                    "    - name: bank\n      upstream: http://127.0.0.1:9080\n      realm: alpha\n"
                        + "      policySet: bank\n"
                ),
            ]),
        Example("web-apps", "Another site", in: top),
        Example("web-apps", "Public paths", in: gateway() + "    <block>\n"),
    ]

    static let clients: [Example] = [
        Example("command-line", "A client with a key", 1, .client, in: client),
        Example(
            "command-line", "An installation that registers", 1, .client,
            in: "server: https://am.bank.example/am\n<block>\n"),
        Example("command-line", "An installation that remembers its users", 1, .client, in: client),
        Example(
            "command-line", "Sign in somewhere else", 1, .client, in: "<block>\n",
            [("[sha256/…, sha256/…]", "[\"\(pin)\", \"\(backup)\"]")]),
        Example("command-line", "Send something", 1, .client, in: client),
        Example("command-line", "Send something", 2, .client, in: client),
        Example("resources", "At the command line", 1, .client, in: client),
        Example("resources", "Users whom an installation remembers", 1, .client, in: client),
        Example("vault", "On the command line", 1, .keys, in: "<block>\n"),
    ]

    /// The blocks that others read, and who does.
    private static let elsewhere = [
        "Sources/AssentServer/AssentServer.docc/FirstServer.md#1. Write the file": "FirstServerPageTests",
        "docs/journeys-and-policies.md#1. A journey to sign in": "Scripts/check_prose.py",
        "docs/journeys-and-policies.md#2. A journey to approve one transfer": "Scripts/check_prose.py",
        "docs/journeys-and-policies.md#3. Two policies": "Scripts/check_prose.py",
        "docs/journeys-and-policies.md#4. A route of the gateway": "Scripts/check_prose.py",
        "docs/resources.md#Sealed inside of TLS": "SealedCommandTests",
        "docs/trust-file.md#On the command line": "TrustFilePageTests",
    ]

    @Test("Each block of YAML on a page is read by a test")
    func all() throws {
        var names: [String] = []
        // `ProgramTests` reads that page, and says which sections it has.
        for page in try DocumentedPage.all() where page.path != "docs/connect-a-program.md" {
            for heading in Set(page.blocks.filter { $0.language == "yaml" }.map(\.heading)) {
                names += page.blocks("yaml", under: heading).indices.map { Self.name(page.path, heading, $0 + 1) }
            }
        }
        let known = (Self.servers + Self.clients).map(\.name) + Self.elsewhere.keys
        #expect(names.sorted() == known.sorted())
    }

    @Test("It is accepted by what reads it", arguments: servers + clients)
    func read(_ example: Example) throws {
        let directory = try TemporaryDirectory()
        defer { withExtendedLifetime(directory) {} }
        let (text, file) = (try example.text(), directory.path("file.yaml"))
        try Data(text.utf8).write(to: URL(filePath: file))
        switch example.kind {
        case .server:
            _ = try TrustKeyFile.make(directory.path("device"))
            try Data("<svg xmlns=\"http://www.w3.org/2000/svg\"/>".utf8).write(
                to: URL(filePath: directory.path("logo.svg")))
            try FileManager.default.createDirectory(
                atPath: directory.path("trust/bank"), withIntermediateDirectories: true)
            if text.contains("secretFile: notify.secret") { try Self.makeSecret(directory.path("notify.secret")) }
            #expect(try ServerConfiguration.load(file: file).realms.map(\.name) == ["/alpha"])
        case .gateway:
            try Self.makeKey(directory.path("edge.key"))
            #expect(try GatewayServerConfiguration.load(file: file).file == file)
        case .client: #expect(try !ClientFile.load(file).clientID.isEmpty)
        case .keys:
            let kind = try KeyProviderKinds.parse(text, file: file)
            #expect(type(of: kind).name == "tpm")
        }
    }

    /// Makes the secret of a push service by the command that the page has for it.
    private static func makeSecret(_ path: String) throws {
        let names = try DocumentedPage("docs/operating.md").names(under: "Messages to a push service")
        let command = try #require(names.first { $0.contains("openssl rand ") })
        let made = try FinishedProcess.run("/bin/sh", ["-c", "umask 077; \(command) >\"$0\"", path])
        try #require(made.status == 0, "\(made.complaints)")
    }

    /// Makes a key by the command that the page has for it.
    private static func makeKey(_ path: String) throws {
        let names = try DocumentedPage("docs/operating.md").names(under: "A gateway elsewhere")
        let command = try #require(names.first { $0.hasPrefix("openssl genpkey ") })
        let made = try FinishedProcess.run("/bin/sh", ["-c", "umask 077; \(command) >\"$0\"", path])
        try #require(made.status == 0, "\(made.complaints)")
    }
}
#endif
