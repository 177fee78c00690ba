import ArgumentParser
import Assent
import Foundation
import HTTPTypes
import Testing

@testable import AssentCLI

@Suite("assent login --stateless: what is refused before anything is sent")
struct StatelessRequestTests {
    @Test("What stands behind --then is read as behind 'assent request', with options of its own")
    func then() throws {
        let login = try #require(
            try AssentCommand.parseAsRoot([
                "login", "--stateless", "--username", "ana", "--then", "post", "/transfers", "--param", "to=Bob", "-i",
            ]) as? LoginCommand)
        #expect(login.username == "ana" && login.stateless)
        let request = try StatelessRequest(login.then)
        #expect(request.command.method == "post" && request.command.path == "/transfers" && request.command.include)
        #expect(request.command.content.param == ["to=Bob"])
        #expect(try request.command.request().httpCall(base: "https://api.example").request.method == .post)
    }

    @Test("A client that does not register, a path without a base, and a file that cannot be read: nothing is sent")
    func refused() async throws {
        let home = try VaultCommandTests.Home()
        let cases: [([String], ClientFile.Registration?, String)] = [
            (["GET", "https://a.example/x"], nil, "assent register"),
            (["GET", "/accounts"], .init(), "resources.base"),
            (["POST", "https://a.example/x", "--data-file", "/nowhere"], .init(), "/nowhere cannot be read"),
            (["GET", "https://a.example/x", "--download", "/nowhere/x"], .init(), "cannot be written"),
        ]
        for (arguments, registration, words) in cases {
            let answers = TerminalAnswers(console: Console(silent: true))
            let error = await #expect(throws: CommandFailure.self) {
                try await StatelessRequest(arguments).run(ClientProfile.ofInstallation(in: home, registration), answers)
            }
            #expect(error?.description.contains(words) == true, "\(error as Any)")
            #expect(!FileManager.default.fileExists(atPath: home.state.path))
        }
    }

    @Test("The help says what it is, and has an example")
    func help() throws {
        let told = try VaultCommandTests.Home().run("login", "--help")
        #expect(told.status == 0)
        // The terminal's width breaks its lines.
        let words = told.out.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        for text in ["--stateless", "--then", "assent login --stateless --then GET /accounts"] {
            #expect(words.contains(text), "\(text)")
        }
    }
}
