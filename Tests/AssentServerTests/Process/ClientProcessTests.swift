import AssentCore
import Foundation
import Testing

@testable import AssentServer

@Suite("What assent serve gives its users, and what they tell")
struct ClientProcessTests {
    private func write(_ text: String, _ path: String) throws {
        try? FileManager.default.removeItem(atPath: path)
        try PrivateFile.create(path, Array(text.utf8))
    }

    /// Ends a server and returns what it has written to standard error.
    private func end(_ serve: ServeProcess) async -> String {
        serve.process.signal(SIGTERM)
        #expect(await serve.process.exit() == 0)
        await serve.process.waitUntilRead()
        return serve.process.errors
    }

    @Test(
        "What login, userinfo and logout write as JSON, what serve logs at trace and what both keep has no secret in it"
    )
    func secrets() async throws {
        try await ProcessWorld.run(onSQLite: true) { world in
            let serve = try await world.start(options: ["--log-level", "trace"])
            let password = try #require(serve.password)
            let passwordFile = world.directory + "/password"
            try write(password + "\n", passwordFile)
            let login = try await world.assent(
                ["login", "--config", world.directory + "/data/client.yaml", "--username", "ana", "--json"]
                    + ["--password-file", passwordFile])
            #expect(login.status == 0, "\(login.errors)")
            #expect(
                try login.lines.map { try JSONValue.parse(Array($0.utf8)) } == [
                    ["signedIn": true, "scopes": ["openid"]]
                ])
            let token = try await world.assent(["token", "--json"])
            let access = try #require(JSONValue.parse(Array((token.lines.first ?? "").utf8))["access_token"]?.string)
            let info = try await world.assent(["userinfo"])
            #expect(info.status == 0 && info.lines.count == 1)
            let bootstrap = try String(contentsOfFile: world.directory + "/data/bootstrap-token", encoding: .utf8)
            let master = try String(contentsOfFile: world.directory + "/data/master.key", encoding: .utf8)

            var search = SecrecyTests.Search()
            search.add(secret: Secret(password), "password", pieces: true)
            let signature = try #require(access.split(separator: ".").last)
            search.add(secret: Secret(String(signature)), "access token", pieces: true)
            search.add(
                secret: Secret(bootstrap.trimmingCharacters(in: .newlines)), "bootstrap token", pieces: true)
            search.add(
                secret: Secret(master.trimmingCharacters(in: .newlines)), "master key", pieces: true)
            func found(_ lines: [String], _ errors: String) -> Set<String> {
                search.found(in: Array((lines + [errors]).joined(separator: "\n").utf8))
            }
            // It finds what was asked for, and that only there.
            #expect(found(token.lines, "").contains("access token"))
            #expect(found([], token.errors) == [])
            for place in ["config", "state"] {
                let directory = world.directory + "/" + place
                for path in try FileManager.default.subpathsOfDirectory(atPath: directory) {
                    guard let data = FileManager.default.contents(atPath: directory + "/" + path) else { continue }
                    #expect(search.found(in: [UInt8](data)) == [], "\(path)")
                }
            }
            let logout = try await world.assent(["logout", "--json"])
            #expect(logout.status == 0)
            #expect(
                try logout.lines.map { try JSONValue.parse(Array($0.utf8)) }
                    == [["signedOut": true, "undone": [], "kept": 0, "browserPage": .null]])
            #expect(found(login.lines, login.errors) == [])
            #expect(found(info.lines, info.errors) == [])
            #expect(found(logout.lines, logout.errors) == [])
            let log = await end(serve)
            #expect(log.contains("Announcement") && !log.contains("passwordCost"))
            #expect(found([], log) == [])
        }
    }

    @Test(
        "With a certificate whose issuer is not in the chain the server says that the backup pin is missing, and clients refuse the file until somebody decides; the decision stays"
    )
    func onePin() async throws {
        try await ProcessWorld.run(restarts: true) { world in
            let made = try GeneratedCertificates.make(now: Date())
            let chain = world.directory + "/chain.pem"
            try write(made.chainPEM, chain)
            try write(made.privateKeyPEM.reveal(), world.directory + "/key.pem")
            try world.edit {
                $0.replacing(
                    "passwordCost: 1024", with: "passwordCost: 1024\ntls: {certificate: chain.pem, privateKey: key.pem}"
                )
            }
            let file = world.directory + "/data/client.yaml"
            func text() throws -> String { try String(contentsOfFile: file, encoding: .utf8) }
            let first = try await world.start()
            let login = try await world.assent(["login", "--config", file, "--username", "ana"])
            #expect(login.status == 78 && login.errors.contains("pins.localhost: needs two different pins and has 1"))
            let errors = await end(first)
            #expect(errors.contains("\(file) has one pin only") && errors.contains("singlePin"))

            let decided = try text().replacing("pins:\n  \"localhost\":\n    - ", with: "singlePin:\n  \"localhost\": ")
            #expect(decided.contains("singlePin"))
            try Data(decided.utf8).write(to: URL(fileURLWithPath: file))
            let second = try await world.start()
            #expect(await !end(second).contains("one pin only"))
            #expect(try text() == decided)

            try write(made.chainPEM + made.authorityPEM, chain)
            let third = try await world.start()
            #expect(await !end(third).contains("one pin only"))
            for pin in made.pins { #expect(try text().contains("    - \(pin)")) }
            #expect(try !text().contains("singlePin"))
        }
    }
}
