import AssentCore
import AssentOTP
import AssentServer
import AssentTesting
import Foundation
import Testing

@testable import AssentCLI
@testable import AssentDemo

@Suite("assent, command by command")
struct CommandTests {
    @Test("Sign in, look, pay, decline, sign out: each says what it did, by words and by status")
    func story() async throws {
        try await Typist.run { typist in
            let early = try await typist.program.run("request", "GET", typist.transfers)
            #expect(early.status != 0 && early.errors.contains("--config"))
            let login = try await typist.login()
            #expect(login.status == 0 && login.output.contains("Signed in."), "\(login.errors)")

            let doctor = try await typist.program.run("doctor")
            #expect(doctor.status == 0, "\(doctor.output)\(doctor.errors)")
            #expect(doctor.output.contains("is the leaf's") && doctor.output.contains("is the root's"))
            let user = try await typist.program.run("userinfo")
            #expect(try JSONValue.parse(user.output)["preferred_username"]?.string == typist.world.account.username)
            let token = try await typist.program.run("token")
            #expect(token.status == 0 && token.output.split(separator: ".").count == 3)
            let detailed = try JSONValue.parse(try await typist.program.run("token", "--json").output)
            #expect(detailed["access_token"]?.string == token.output && detailed["expires_at"]?.integer != nil)
            #expect(try await typist.balance() == "1000.00")

            let paid = try await typist.pay("200.00", typing: ["1", try typist.code()])
            #expect(paid.status == 0 && paid.output.contains(#""amount":"200.00""#), "\(paid.errors)")
            #expect(paid.errors.contains("Amount: 200.00 EUR") && paid.errors.contains("To: Bob"))
            let declined = try await typist.pay("10.00", typing: ["2"])
            #expect(declined.status == 2 && declined.errors.contains("declined"))
            let alone = try await typist.pay("10.00", typing: [])
            #expect(alone.status == 1 && alone.errors.contains("no terminal") && alone.errors.contains("no more lines"))
            #expect(try await typist.balance() == "800.00")

            let status = try await typist.program.run("status")
            #expect(status.status == 0 && status.output.contains("ana is signed in at"), "\(status.errors)")
            #expect(status.output.contains("unless it is used") && status.output.contains("Access token:  until"))
            let told = try JSONValue.parse(try await typist.program.run("status", "--json").output)
            #expect(told["user"] == "ana" && told["signedIn"] == true && told["session"]?["valid"] == true)
            #expect(told["issuer"]?.string?.hasSuffix("/oauth2/realms/root/realms/alpha") == true)

            let out = try await typist.program.run("logout")
            #expect(out.status == 0 && out.output == "Signed out here.\nThe server was told.", "\(out)")
            let again = try await typist.program.run("logout")
            #expect(again.status == 0 && again.output == "Nobody was signed in.", "\(again)")
            for words in [["logout", "--json"], ["logout", "--retry", "--json"]] {
                let silent = try await typist.program.run(words)
                #expect(silent.status == 0, "\(words): \(silent)")
                #expect(try JSONValue.parse(silent.output)["signedOut"]?.bool == false, "\(words): \(silent.output)")
            }
            let nobody = try await typist.program.run("status")
            #expect(nobody.status == 1 && nobody.output.contains("Nobody is signed in"))
            let late = try await typist.program.run("request", "GET", typist.transfers)
            #expect(late.status == 1 && late.errors.contains("assent login"))
        }
    }

    @Test("With --json the approval is asked for on standard error, and standard output is one object")
    func json() async throws {
        try await Typist.run { typist in
            #expect(try await typist.login().status == 0)
            let command = ["request", "POST", typist.transfers, "--json", "--data", Typist.transfer("200.00")]
            let paid = try await typist.program.run(command, typing: ["1", try typist.code()])
            #expect(paid.status == 0 && paid.errors.contains("Amount: 200.00 EUR"), "\(paid)")
            let reply = try JSONValue.parse(paid.output)
            #expect(reply["status"]?.integer == 201 && reply["bodyEncoding"]?.string == "json", "\(paid.output)")
            #expect(reply["body"]?["amount"]?.string == "200.00" && reply["body"]?["to"]?.string == "Bob")
            #expect(reply["fields"]?["content-type"]?.string?.hasPrefix("application/json") == true)
            #expect(reply["authorization"]?["approved"]?.bool == true)
            #expect(reply["authorization"]?["transaction"]?.string?.isEmpty == false, "\(paid.output)")

            let declined = try await typist.program.run(command, typing: ["2"])
            #expect(declined.status == 2 && declined.errors.contains("declined"), "\(declined)")
            #expect(try JSONValue.parse(declined.output).object?.names == ["error", "detail"], "\(declined.output)")

            let accounts = "\(typist.world.endpoints.gateway ?? "")/accounts"
            let read = try await typist.program.run("request", "GET", accounts, "--json")
            let account = try JSONValue.parse(read.output)
            #expect(account["body"]?["balance"]?.string == "800.00", "\(read)")
            #expect(account["authorization"] == JSONValue.null)
            // A reply that is a refusal is a reply.
            let refused = try await typist.program.run("request", "--as", "nobody", "GET", accounts, "--json")
            #expect(refused.status == 1 && refused.errors.contains("The server answered 401"), "\(refused)")
            #expect(try JSONValue.parse(refused.output)["status"]?.integer == 401)
            #expect(!refused.errors.hasPrefix("\n") && !refused.errors.contains("\n\n"), "an empty line: \(refused)")
        }
    }

    @Test("A sign-out that the server did not get is pending, however often it is asked for, until it is passed on")
    func offlineLogout() async throws {
        try await Typist.run { typist in
            // What the client needs of the server's directory, which goes with the server.
            let authority = try #require(typist.world.endpoints.authorityFile)
            let kept = typist.program.home + "/authority.pem"
            try FileManager.default.copyItem(atPath: authority, toPath: kept)
            let file = try String(contentsOfFile: typist.program.clientFile, encoding: .utf8)
            try file.replacing(authority, with: kept).write(
                toFile: typist.program.clientFile, atomically: true, encoding: .utf8)
            #expect(try await typist.login().status == 0)
            await typist.world.stop()
            for attempt in 1...2 {
                let out = try await typist.program.run("logout", "--json")
                #expect(out.status == 1, "attempt \(attempt): \(out)")
                let told = try #require(try? JSONValue.parse(out.output), "attempt \(attempt): \(out)")
                #expect(told["undone"]?.array?.isEmpty == false && told["kept"]?.integer ?? 0 > 0, "\(out.output)")
                #expect(told["signedOut"]?.bool == (attempt == 1), "attempt \(attempt): \(out.output)")
                #expect(!out.errors.contains("was told"), "\(out.errors)")
            }
            let words = try await typist.program.run("logout")
            #expect(words.status == 1 && words.output == "Nobody was signed in.", "\(words)")
        }
    }

    @Test("With a vault that does not open, nothing is said to be signed out, and the error says what to do")
    func unreadableLogout() async throws {
        try await Typist.run { typist in
            #expect(try await typist.login().status == 0)
            let vault = typist.program.home + "/state/assent/default/vault/vault"
            try Data([1]).write(to: URL(fileURLWithPath: vault))
            let out = try await typist.program.run("logout")
            #expect(out.status == 1 && !out.output.contains("The server was told"), "\(out)")
            #expect(!out.output.contains("Signed out") && !out.errors.contains("storageFailed:"), "\(out)")
            let told = try JSONValue.parse(try await typist.program.run("logout", "--json").output)
            #expect(told["signedOut"] == false || told["error"] != nil, "\(told)")
        }
    }

    @Test("What a server shows once is not lost without a word when nobody can read it")
    func announcementLost() async throws {
        let directory = NSTemporaryDirectory() + "/assent-announce-" + SystemRandom().token(byteCount: 9)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let program = try Program(below: directory, client: "")
        let file = directory + "/assent.yaml"
        try String(contentsOfFile: World.configurationFile, encoding: .utf8)
            .replacing("8443", with: "0").replacing("8444", with: "0")
            .replacing("dataDirectory: .assent", with: "dataDirectory: \(directory)/data")
            .write(toFile: file, atomically: false, encoding: .utf8)
        let script = "exec \"$1\" serve --config '\(file)' > /dev/full"
        let serving = try program.start([], under: ["/bin/sh", "-c", script, "sh"])
        let warning = try await serving.errorLine(with: "The credentials that were shown once are lost")
        #expect(warning.contains("assent users password"))
        serving.interrupt()
        #expect(await serving.result().status == 1)
    }

    @Test("hash-password asks twice, and makes nothing of two that differ")
    func hashPassword() async throws {
        let directory = NSTemporaryDirectory() + "/assent-hash-" + SystemRandom().token(byteCount: 9)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let program = try Program(below: directory, client: "")
        let made = try await program.run("admin", "hash-password", typing: ["correct horse", "correct horse"])
        #expect(made.status == 0 && made.output.hasPrefix("$scrypt$ln=17,r=8,p=1$"), "\(made.errors)")
        let differing = try await program.run("admin", "hash-password", typing: ["correct horse", "correct hearse"])
        #expect(differing.status == 1 && differing.output.isEmpty && differing.errors.contains("differ"))
    }

    @Test("A payee that would control the terminal is refused, and none of it is written")
    func escapes() async throws {
        try await Typist.run { typist in
            #expect(try await typist.login().status == 0)
            for payee in [#"Bob\u001b[31m"#, #"Bob\u202eevE"#, #"Bob\r\nAmount: 1.00 EUR"#] {
                let result = try await typist.pay("10.00", to: payee, typing: ["1", try typist.code()])
                #expect(result.status == 1 && result.errors.contains("400"))
                #expect(!(result.output + result.errors).unicodeScalars.contains { $0 == "\u{1B}" || $0 == "\u{202E}" })
            }
            #expect(try await typist.balance() == "1000.00")
        }
    }

    @Test("When the reply is lost, the status says so and --ask tells what became of it; nothing is paid twice")
    func lostReply() async throws {
        try await Typist.run { typist in
            #expect(try await typist.login().status == 0)
            let command = ["request", "POST", typist.transfers, "--data", Typist.transfer("200.00")]
            let running = try typist.program.start(command + ["--json"], typing: true)
            _ = try await running.errorLine(with: "You are asked to approve")
            typist.world.relay.cutNextReply()
            try running.type(["1", try typist.code()])
            let result = await running.result()
            #expect(result.status == 3, "\(result.errors)")
            let id = try #require(result.errors.firstMatch(of: /--ask (\S+)/)).1
            #expect(try JSONValue.parse(result.output)["ask"]?.string == String(id), "\(result.output)")
            let told = try await typist.program.start(command + ["--ask", String(id)]).result()
            let outcome = try JSONValue.parse(told.output)["outcome"]
            #expect(told.status == 1 && outcome?["status"]?.integer == 201, "\(told.output) \(told.errors)")
            #expect(try await typist.balance() == "800.00")
        }
    }

    @Test("What cannot be run is refused with the reason and the place, before anything happens")
    func badInput() async throws {
        try await Typist.run { typist in
            let broken = typist.program.home + "/broken.yaml"
            let example = try String(contentsOfFile: World.configurationFile, encoding: .utf8)
            try ("nonsense: 1\n" + example).write(toFile: broken, atomically: false, encoding: .utf8)
            for command in ["doctor", "serve"] {
                let result = try await typist.program.run(command, "--config", broken)
                #expect(result.status == 78 && (result.output + result.errors).contains("broken.yaml:1: "))
            }
            let healthy = try await typist.program.run("doctor", "--config", typist.program.clientFile)
            #expect(healthy.status == 0, "\(healthy.output)\(healthy.errors)")
            for wrong in [
                ["request", "FETCH ME", "https://localhost/"], ["request", "GET"], ["token", "--json", "--yaml"],
                ["pay"],
                ["request", "POST", "https://localhost/", "--data", "{"],
                ["request", "POST", "https://localhost/", "--data", "{}", "--data-file", "x"],
            ] {
                let result = try await typist.program.start(wrong).result()
                #expect(result.status == 64 && !result.errors.isEmpty, "\(wrong)")
            }
        }
    }

    @Test("A sign-in that fails, and a call with another file, leave the profile as it was")
    func failedSignIn() async throws {
        try await Typist.run { typist in
            #expect(try await typist.login().status == 0)
            let kept = try String(contentsOfFile: typist.program.home + "/config/assent/default.yaml", encoding: .utf8)
            let elsewhere = typist.program.home + "/elsewhere.yaml"
            let wrong = try String(contentsOfFile: typist.program.clientFile, encoding: .utf8)
                .replacing(typist.world.endpoints.server, with: "https://localhost:1/am")
            try wrong.write(toFile: elsewhere, atomically: false, encoding: .utf8)

            let failed = try await typist.program.run("login", "--config", elsewhere, typing: ["ana", "x", "1"])
            #expect(failed.status != 0 && !failed.errors.isEmpty)
            _ = try await typist.program.run("userinfo", "--config", elsewhere)
            let now = try String(contentsOfFile: typist.program.home + "/config/assent/default.yaml", encoding: .utf8)
            #expect(now == kept)
            #expect(try await typist.balance() == "1000.00")
        }
    }

    @Test("What the server did not accept is said, also to somebody who pipes the answers in")
    func refusedAnswers() async throws {
        try await Typist.run { typist in
            let (user, password) = (typist.world.account.username, typist.world.account.password.reveal())
            let wrong = try await typist.program.run(
                "login", "--config", typist.program.clientFile, typing: [user, "wrong", user, password])
            #expect(wrong.status == 1 && wrong.output.contains("That was not accepted. Try again."), "\(wrong.errors)")
            let code = try typist.code()
            let login = try await typist.program.run(
                "login", "--config", typist.program.clientFile, typing: [user, password, code])
            #expect(login.status == 0 && !login.output.contains("not accepted"), "\(login.errors)")
            let used = try await typist.pay("10.00", typing: ["1", code, try typist.code()])
            #expect(used.status == 0 && used.errors.contains("wait for the next"), "\(used.errors)")
            let file = typist.program.home + "/password"
            try "wrong\n".write(toFile: file, atomically: false, encoding: .utf8)
            let scripted = try await typist.program.run("login", "--username", user, "--password-file", file)
            #expect(scripted.status == 2 && scripted.errors.contains("did not accept"), "\(scripted.errors)")
        }
    }

    @Test("An approval that took too long is called that, and nothing is paid")
    func lateApproval() async throws {
        try await Typist.run { typist in
            #expect(try await typist.login().status == 0)
            let running = try typist.program.start(
                ["request", "POST", typist.transfers, "--data", Typist.transfer("200.00")], typing: true)
            _ = try await running.errorLine(with: "You are asked to approve")
            typist.clock.advance(by: 100)
            try running.type(["1"])
            typist.clock.advance(by: 400)
            try running.type([try typist.code(), try typist.code(), try typist.code()])
            let result = await running.result()
            #expect(result.status == 2 && result.errors.contains("approval"), "\(result.errors)")
            #expect(!result.errors.contains("Session has timed out"))
            #expect(try await typist.balance() == "1000.00")
        }
    }

    @Test("Consents are listed, and what was never agreed to cannot be taken back")
    func consents() async throws {
        try await Typist.run { typist in
            #expect(try await typist.program.run("consents").status != 0, "nobody is signed in")
            let error = try await typist.program.run("token", "--json", "--config", typist.program.clientFile)
            #expect(error.status == 1 && error.errors.contains("[signInNeeded]"), "\(error)")
            #expect(try JSONValue.parse(error.output)["error"] == "signInNeeded")
            #expect(try await typist.login().status == 0)
            let none = try await typist.program.run("consents")
            #expect(none.status == 0 && none.output.isEmpty, "\(none.errors)")
            let refused = try await typist.program.run("consents", "withdraw", "bank-app")
            #expect(refused.status == 2 && refused.errors.contains("The server refused"))
            #expect(try await typist.program.run("consents", "withdraw").status == 64)
        }
    }

    private static func run(_ command: String, _ authority: String, _ typist: Typist) async throws -> Program.Result {
        let script = "set -o pipefail; PATH=${1%/*}:$PATH; \(command) --silent --include --cacert '\(authority)'"
        let ran = try await typist.program.start([], under: ["/bin/bash", "-c", script, "bash"]).result()
        #expect(ran.status == 0, "\(script): \(ran.errors)")
        return ran
    }

    @Test(
        "What the help of 'assent token' shows is what works, with the authority that it names",
        arguments: [false, true])
    func tokenExample(isBound: Bool) async throws {
        try await Typist.run { typist in
            #expect(try await typist.login(isBound ? ["--dpop"] : []).status == 0)
            let help = try await typist.program.run("token", "--help").output
            let words = help.split(whereSeparator: \.isWhitespace).joined(separator: " ")
            let examples = words.matches(of: /Example: (assent token .*?curl -H @- https:\/\/\S+)/).map(\.1)
            let example = try #require(examples.first { $0.contains("--proof") == isBound })
            let authority = try #require(typist.world.endpoints.authorityFile)
            #expect(words.contains("--cacert") && authority.hasSuffix("/authority.pem"))
            let gateway = try #require(typist.world.endpoints.gateway)
            let command = String(example).replacing(/https:\/\/localhost:[0-9]+/, with: gateway)
            var ran = try await Self.run(command, authority, typist)
            if isBound {
                // The server's clock stands still, so that it gives a nonce; the help says what to do with it.
                let nonce = try #require(ran.output.firstMatch(of: /DPoP-Nonce: (\S+)/.ignoresCase())).1
                ran = try await Self.run(command.replacing(" | ", with: " --nonce \(nonce) | "), authority, typist)
            }
            let body = try #require(ran.output.components(separatedBy: "\r\n\r\n").last)
            #expect(try JSONValue.parse(body)["balance"] == "1000.00", "\(ran.output)")
        }
    }

    @Test("An audit log that does not fit where it is written to is a failure, and says so")
    func fullDisk() async throws {
        try await Typist.run { typist in
            #expect(try await typist.login().status == 0)
            let token = try #require(typist.world.endpoints.bootstrapFile)
            #expect(try await typist.program.run("admin", "bootstrap", "--token-file", token).status == 0)
            for command in ["admin audit", "admin audit --limit 1", "users list", "users list --json"] {
                let script = "\"$1\" \(command) > /dev/full"
                let ended = try await typist.program.start([], under: ["/bin/sh", "-c", script, "sh"]).result()
                #expect(ended.status == 1 && ended.errors.contains("The output is not complete"), "\(ended.errors)")
            }
        }
    }

    @Test("A body comes from standard input, with header fields of one's own")
    func standardInput() async throws {
        try await Typist.run { typist in
            #expect(try await typist.login().status == 0)
            let reply = try await typist.program.run(
                "request", "POST", typist.transfers, "--data-file", "-", "-H", "Content-Type: application/json",
                "--include", typing: [Typist.transfer("1.00")])
            // Nobody types there: the approval is asked for at the terminal, and there is none.
            #expect(reply.status == 1 && reply.errors.contains("Amount: 1.00 EUR"), "\(reply.errors)")
            #expect(reply.errors.contains("no terminal"))
            let read = try await typist.program.run(
                "request", "GET", "\(typist.world.endpoints.gateway ?? "")/accounts", "--data-file", "-",
                typing: ["{}"])
            #expect(read.status != 64, "\(read.errors)")
        }
    }
}
