import AssentCore
import AssentServer
import Foundation
import TestSupport
import Testing

@testable import AssentCLI
@testable import AssentDemo

@Suite("assent admin registrations")
struct RegistrationsCommandTests {
    @Test("An administrator makes a token for two, lists who has registered with it, ends one, and then the rest")
    func story() async throws {
        try await Typist.run { typist in
            func admin(_ words: String...) async throws -> Program.Result {
                try await typist.program.run(["admin", "registrations"] + words)
            }
            let app = InstallationScene.app
            let early = try await typist.program.run(
                "admin", "registrations", "list", "--config", typist.program.clientFile)
            #expect(early.status == 1 && early.errors.contains("assent login"), "\(early.errors)")
            // The file comes first, before the server could make a token that would be lost.
            let nowhere = try await typist.program.run(
                "admin", "registrations", "token", "--app", app, "--output", typist.program.home + "/nowhere/token.txt",
                "--config", typist.program.clientFile)
            #expect(nowhere.status == 1 && nowhere.errors.contains("cannot be made"), "\(nowhere.errors)")
            #expect(try await typist.login().status == 0)
            for words in [["list"], ["token", "--app", app], ["end", "\(app)~1"], ["end", "--app", app, "--all"]] {
                let denied = try await typist.program.run(["admin", "registrations"] + words)
                #expect(denied.status == 2 && denied.errors.contains("The server refused"), "\(denied.errors)")
                #expect(denied.output.isEmpty, "\(denied.output)")
            }
            let bootstrap = try #require(typist.world.endpoints.bootstrapFile)
            #expect(try await typist.program.run("admin", "bootstrap", "--token-file", bootstrap).status == 0)

            // Nobody has registered, and there are no other apps.
            let none = try await admin("list", "--app", app)
            #expect(none.status == 0 && none.output.isEmpty, "\(none.output)\(none.errors)")
            let wrong = try await admin("token", "--app", "bank-app")
            #expect(wrong.status == 2 && wrong.output.isEmpty, "\(wrong.output)\(wrong.errors)")
            let place = typist.program.home + "/kept.txt"
            #expect(try await admin("token", "--app", "bank-app", "--output", place).status == 2)
            #expect(!FileManager.default.fileExists(atPath: place))
            #expect(try await admin("end", "\(app)~AAAAAAAAAAAAAAAAAAAAAA").status == 2)

            let made = try await admin("token", "--app", app, "--count", "2", "--json")
            let token = try #require(try JSONValue.parse(made.output)["token"]?.string, "\(made.output)\(made.errors)")
            let first = try await Self.register(typist, "first", by: token)
            let second = try await Self.register(typist, "second", by: token)
            #expect(first.status == 0 && second.status == 0, "\(first.errors)\(second.errors)")
            let third = try await Self.register(typist, "third", by: token)
            #expect(third.status != 0, "\(third.output)")
            // A sign-in registers before it asks: no password and no code is typed for what is refused, and nobody is
            // signed in by it.
            let stranger = try Self.installation(typist, "stranger")
            let login = try await stranger.run("login", "--config", stranger.clientFile)
            #expect(login.status == 2 && login.errors.contains("assent register --token-file"), "\(login.errors)")
            #expect(try await stranger.run("status", "--config", stranger.clientFile).status == 1)

            let listed = try await admin("list", "--app", app)
            let instances = try listed.output.split(separator: "\n").map { try JSONValue.parse(String($0)) }
            #expect(Set(instances.compactMap { $0["name"]?.string }) == ["first", "second"], "\(listed.output)")
            #expect(instances.allSatisfy { $0["app"]?.string == app && $0["keyThumbprint"] != nil })
            #expect(!listed.output.contains(token))
            #expect(try await admin("list", "--app", "bank-app").output.isEmpty)
            #expect(try await admin("list").output == listed.output)

            let id = try #require(instances.first?["clientId"]?.string)
            let ended = try await admin("end", id)
            #expect(ended.status == 0, "\(ended.errors)")
            #expect(try await admin("end", id).status == 2)
            // The token that is still valid ends as well.
            let kept = try await admin("token", "--app", app, "--output", place)
            let mode = try FileManager.default.attributesOfItem(atPath: place)[.posixPermissions] as? Int
            let secret = try String(contentsOfFile: place, encoding: .utf8).trimmingCharacters(in: .newlines)
            #expect(kept.status == 0 && mode == 0o600 && !kept.output.contains(secret), "\(kept.errors)")
            #expect(try await Self.register(typist, "kept", by: secret).status == 0)
            #expect(try await admin("token", "--app", app, "--output", place).status == 64)
            let plain = try await admin("token", "--app", app)
            let open = plain.output.trimmingCharacters(in: .whitespacesAndNewlines)
            #expect(plain.status == 0 && !open.isEmpty && !open.contains(where: \.isWhitespace), "\(plain.output)")
            let all = try await admin("end", "--app", app, "--all", "--json")
            #expect(try all.status == 0 && JSONValue.parse(all.output)["ended"] == 2, "\(all.output)\(all.errors)")
            #expect(try await admin("end", "--app", app, "--all").output.contains("0 instances have ended."))
            #expect(try await Self.register(typist, "fourth", by: open).status != 0)
            #expect(try await admin("list").output.isEmpty)
        }
    }

    /// What `assent register` does for an installation with a home of its own.
    private static func register(_ typist: Typist, _ name: String, by token: String) async throws -> Program.Result {
        let program = try installation(typist, name)
        let tokenFile = program.home + "/token.txt"
        try program.keep(token, in: tokenFile)
        return try await program.run("register", "--config", program.clientFile, "--token-file", tokenFile)
    }

    /// An installation of the app, with a home of its own.
    private static func installation(_ typist: Typist, _ name: String) throws -> Program {
        var file = try #require(
            ClientFile(endpoints: typist.world.endpoints, configuration: typist.world.configuration))
        file.clientID = InstallationScene.app
        file.registration = .init(clientName: name)
        return try Program(below: "\(typist.program.home)/\(name)", client: file.yaml)
    }
}
