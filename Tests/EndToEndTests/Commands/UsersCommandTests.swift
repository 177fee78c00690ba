import AssentCore
import AssentOTP
import AssentServer
import AssentTesting
import Foundation
import Testing

@testable import AssentCLI
@testable import AssentDemo

@Suite("assent users")
struct UsersCommandTests {
    @Test("An administrator makes a user with a code, lists, locks, and gives a new password and new codes")
    func story() async throws {
        try await Typist.run { typist in
            #expect(try await typist.login().status == 0)
            let denied = try await typist.program.run("users", "list")
            #expect(denied.status == 2 && denied.errors.contains("The server refused"))
            let token = try #require(typist.world.endpoints.bootstrapFile)
            #expect(try await typist.program.run("admin", "bootstrap", "--token-file", token).status == 0)

            let made = try await typist.program.run(
                "users", "add", "ben", "--totp", "--json", "--attribute", "mail=ben@example.org",
                typing: ["correct horse", "correct horse"])
            #expect(made.status == 0, "\(made.errors)")
            let first = try self.totp(made.output)
            let again = try await typist.program.run("users", "add", "Ben", "--no-password")
            #expect(again.status == 2 && again.errors.contains("already"), "\(again.errors)")

            let ben = try Program(below: typist.program.home + "/ben", client: typist.world.clientFile())
            func login(_ password: String, _ totp: TOTP) async throws -> Program.Result {
                typist.clock.advance(by: 30)
                return try await ben.run(
                    "login", "--config", ben.clientFile,
                    typing: ["ben", password, totp.code(at: typist.clock.now)])
            }
            let signedIn = try await login("correct horse", first)
            #expect(signedIn.status == 0, "\(signedIn.errors)")

            let list = try await typist.program.run("users", "list", "--json")
            let users = try list.output.split(separator: "\n").map { try JSONValue.parse(String($0)) }
            let listed = try #require(users.first { $0["username"] == "ben" })
            let id = try #require(listed["id"]?.string)
            func audit(_ user: String) async throws -> [JSONValue] {
                let acts = try await typist.program.run("admin", "audit", "--user", user)
                return try acts.output.split(separator: "\n").map { try JSONValue.parse(String($0)) }
            }
            let acts = try await audit(id)
            #expect(!acts.isEmpty && acts.allSatisfy { $0["user"]?.string == "ben" }, "\(acts)")
            #expect(try await audit("ben") == acts)
            #expect(listed["secondFactor"] == true && listed["password"] == true && listed["active"] == true)
            let plain = try await typist.program.run("users", "list")
            #expect(plain.output.contains("ana ") && plain.output.contains("admin"), "\(plain.output)")

            let locked = try await typist.program.run("users", "lock", "ben", "--json")
            #expect(try locked.status == 0 && JSONValue.parse(locked.output)["username"] == "ben", "\(locked.errors)")
            // What is kept at ben's is worth nothing any more, and status asks instead of believing it.
            let status = try await ben.run("status")
            #expect(status.status == 1 && status.output.contains("was signed in"), "\(status.output)")
            let user = try await ben.run("userinfo")
            #expect(user.status != 0)
            #expect(try await typist.program.run("users", "unlock", "ben").status == 0)

            let changed = try await typist.program.run(
                "users", "password", "ben", typing: ["staple battery", "staple battery"])
            #expect(changed.status == 0, "\(changed.errors)")
            let renewed = try await typist.program.run("users", "totp", "ben")
            #expect(renewed.status == 0 && renewed.output.contains("otpauth://totp/"), "\(renewed.errors)")
            let uri = try #require(renewed.output.split(separator: "\n").first { $0.contains("otpauth://") })
            let second = try #require(try OTPAuthURI(String(uri.drop { $0 == " " })).totp())
            #expect(try await login("correct horse", second).status != 0)
            #expect(try await login("staple battery", second).status == 0)
            let nobody = try await typist.program.run("users", "totp", "nobody")
            #expect(nobody.status == 2 && nobody.errors.contains("The realm has no user of that name."))
            let last = try await typist.program.run("users", "lock", "ana")
            #expect(last.status == 2 && last.errors.contains("give another user the role first"), "\(last.errors)")

            let sessions = try await typist.program.run("users", "sessions", "ben", "--json")
            let session = try JSONValue.parse(sessions.output)
            #expect(session["token"] == true && session["bound"] == false, "\(sessions.output)\(sessions.errors)")
            let sid = try #require(session["session"]?.string)
            let shown = try await typist.program.run("users", "sessions", "ben")
            #expect(shown.output.hasPrefix("\(sid)  user, level "), "\(shown.output)")
            #expect(try await typist.program.run("users", "sessions", "ben", "--end", sid).status == 0)
            let ended = try await typist.program.run("users", "sessions", "ben", "--end", sid)
            #expect(ended.status == 2 && ended.errors.contains("The user has no such session."), "\(ended.errors)")
            let none = try await typist.program.run("users", "sessions", "ben")
            #expect(none.status == 0 && none.output.contains("ben has no session"), "\(none.output)")
            #expect(try await ben.run("userinfo").status != 0)
        }
    }

    @Test("Whoever follows the audit log sees a wrong password soon after it was typed, with name and address")
    func follow() async throws {
        try await Typist.run { typist in
            #expect(try await typist.login().status == 0)
            let token = try #require(typist.world.endpoints.bootstrapFile)
            #expect(try await typist.program.run("admin", "bootstrap", "--token-file", token).status == 0)
            let following = try typist.program.start(["admin", "audit", "--follow", "--limit", "1"])
            _ = try await following.line(with: "\"event\"")
            let eve = try Program(below: typist.program.home + "/eve", client: typist.world.clientFile())
            _ = try await eve.run("login", "--config", eve.clientFile, typing: ["ana", "wrong"])
            let line = try await following.line(with: "password.verify")
            let record = try JSONValue.parse(line)
            #expect(record["outcome"] == "refused" && record["detail"]?["username"] == "ana", "\(line)")
            #expect(record["detail"]?["address"]?.string?.isEmpty == false, "\(line)")
            following.interrupt()
            _ = await following.result()
        }
    }

    private func totp(_ json: String) throws -> TOTP {
        let uri = try #require(try JSONValue.parse(json)["otpauth"]?.string)
        return try #require(try OTPAuthURI(uri).totp())
    }
}

extension DemoWorld {
    fileprivate func clientFile() throws -> String {
        try #require(ClientFile(endpoints: endpoints, configuration: configuration)).yaml
    }
}
