import AssentCore
import AssentOTP
import AssentServer
import AssentTesting
import Foundation
import TestSupport
import Testing

@testable import AssentCLI
@testable import AssentDemo

/// What the pages have for administrators to type, typed line by line.
@Suite("The lines of the pages for administrators")
struct AdministratorPageTests {
    private static let password = "correct horse"

    private static func commands(_ page: String, _ heading: String) throws -> [String] {
        try #require(DocumentedPage("docs/\(page).md").blocks("console", under: heading).first).commands
    }

    /// Somebody who has signed in and is an administrator.
    private static func run(_ body: (Typist) async throws -> Void) async throws {
        try await Typist.run { typist in
            #expect(try await typist.login().status == 0)
            let token = try #require(typist.world.endpoints.bootstrapFile)
            #expect(try await typist.program.run("admin", "bootstrap", "--token-file", token).status == 0)
            try await body(typist)
        }
    }

    private static func clientFile(_ typist: Typist) throws -> ClientFile {
        try #require(ClientFile(endpoints: typist.world.endpoints, configuration: typist.world.configuration))
    }

    // MARK: - Users and the audit log

    @Test("Users, roles, sessions and the audit log, as docs/operating.md shows them")
    func administration() async throws {
        let commands = try Self.commands("operating", "Administration")
        #expect(commands.count == 15, "\(commands)")
        try await Self.run { typist in
            let paid = try await typist.program.run(
                "request", "POST", typist.transfers, "--json", "--data", Typist.transfer("200.00"),
                typing: ["1", try typist.code()])
            let approved = try JSONValue.parse(paid.output)["authorization"]?["transaction"]?.string
            let transaction = try #require(approved, "\(paid)")
            var (codes, session) = ("", "")
            for command in commands {
                if command == "assent users sessions bob" { try await Self.signIn(typist, with: codes) }
                let line = command.replacing("4d9f8a52-…", with: session)
                    .replacing("3b8c1b2b-…", with: transaction)
                guard !line.contains("--follow") else {
                    try await typist.program.beside(line) { log in _ = try await log.line(with: "\"event\"") }
                    continue
                }
                let asks = line.contains("users add ") || line.contains("users password ")
                let result = try await typist.program.type(line, asks ? [Self.password, Self.password] : [])
                #expect(result.status == 0, "\(line): \(result)")
                let words = try Self.words(after: command)
                #expect(words.isEmpty || result.output.contains(words), "\(line): \(result)")
                if line.contains("users totp ") { codes = result.output }
                if line == "assent users sessions bob" { session = String(result.output.prefix { $0 != " " }) }
            }
        }
    }

    /// What a line of the page must print; the empty text where it may print nothing.
    private static func words(after command: String) throws -> String {
        // Of several that fit, the first is meant.
        let known = [
            ("users add ", "otpauth://totp/"), ("users list", "bob"), ("users lock ", "bob is locked out."),
            ("users unlock ", "bob may sign in."), ("users password ", "bob has the new password."),
            ("users totp ", "otpauth://totp/"), ("--end ", "The session of bob has ended."),
            ("users sessions ", "user, level "), ("admin roles ", "Done."), ("--limit ", "\"event\""),
            ("--transaction ", "transaction.take"), ("admin reports ", "Nothing was reported."),
            ("registrations list", ""), ("--user bob ", ""),
        ]
        let found = known.first { command.contains($0.0) }
        return try #require(found, "\(command)").1
    }

    /// Signs bob in, in a home of his own, with his new password and the codes that were shown last.
    private static func signIn(_ typist: Typist, with codes: String) async throws {
        let uri = try #require(codes.split(separator: "\n").first { $0.contains("otpauth://") })
        let totp = try #require(try OTPAuthURI(String(uri.drop { $0 == " " })).totp())
        let bob = try Program(below: typist.program.home + "/bob", client: clientFile(typist).yaml)
        typist.clock.advance(by: 30)
        let login = try await bob.run(
            "login", "--config", bob.clientFile, typing: ["bob", password, totp.code(at: typist.clock.now)])
        #expect(login.status == 0, "\(login)")
    }

    // MARK: - Keys

    @Test("Signing keys and keys for payload encryption, as docs/operating.md shows them")
    func keys() async throws {
        let rotations = try Self.commands("operating", "Signing keys")
        let payload = try Self.commands("operating", "Keys for payload encryption")
        try #require(rotations.count == 3 && payload.count == 3)
        try await Self.run { typist in
            for command in rotations {
                let result = try await typist.program.type(command)
                #expect(result.status == 0 && result.output == "Done.", "\(command): \(result)")
                guard !command.contains("--discard-old") else { continue }
                // What the old key has signed is good.
                #expect(try await typist.balance() == "1000.00")
            }
            let added = try await typist.program.type(payload[0])
            let kid = try #require(try JSONValue.parse(added.output)["kid"]?.string, "\(added)")
            let listed = try await typist.program.type(payload[1])
            #expect(listed.status == 0 && listed.output.contains(kid), "\(listed)")
            #expect(!listed.output.contains("withdrawnAt"))
            #expect(payload[2].contains("<kid>"))
            let withdrawn = try await typist.program.type(payload[2].replacing("<kid>", with: kid))
            #expect(withdrawn.status == 0 && withdrawn.output == "Done.", "\(withdrawn)")
            #expect(try await typist.program.type(payload[1]).output.contains("withdrawnAt"))
        }
    }

    // MARK: - Installations

    @Test("Registrations of an app, as docs/registration.md shows them")
    func registrations() async throws {
        let commands = try Self.commands("registration", "What an operator does").map {
            $0.replacing("--app pay", with: "--app \(InstallationScene.app)")
        }
        try #require(commands.count == 4)
        try await Self.run { typist in
            let token = try await typist.program.type(commands[0])
            #expect(token.status == 0, "\(token)")
            try await Self.register(typist, by: token.output)
            let listed = try await typist.program.type(commands[1])
            let id = try #require(try JSONValue.parse(listed.output)["clientId"]?.string, "\(listed)")
            let line = commands[2].replacing("pay~3q2-7wAAAAAAAAAAAAAAAA", with: id)
            #expect(line.contains(id))
            let ended = try await typist.program.type(line)
            #expect(ended.status == 0, "\(ended)")
            #expect(try await typist.program.type(commands[1]).output.isEmpty)
            let all = try await typist.program.type(commands[3])
            #expect(all.status == 0 && all.output.contains("0 instances have ended."), "\(all)")
        }
    }

    /// Registers an installation with a home of its own.
    private static func register(_ typist: Typist, by token: String) async throws {
        var file = try clientFile(typist)
        file.clientID = InstallationScene.app
        file.registration = .init(clientName: "one")
        let program = try Program(below: typist.program.home + "/one", client: file.yaml)
        try program.keep(token, in: program.home + "/token.txt")
        typist.catchUp()
        let registered = try await program.type("assent register --config client.yaml --token-file token.txt")
        #expect(registered.status == 0, "\(registered)")
    }
}
