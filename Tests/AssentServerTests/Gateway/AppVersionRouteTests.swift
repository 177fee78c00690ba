import AssentCore
import AssentTesting
import Foundation
import Testing

@testable import AssentServer

@Suite("Versions of an app over HTTP")
struct AppVersionRouteTests {
    private typealias Door = RegistrationDoor

    private static let versions =
        "\n        versions: {\"3.2.0\": {status: enabled}, \"3.1.0\": {status: loginOnly}, "
        + "\"3.0.0\": {status: disabled}, default: {status: loginOnly}}"

    private static func say(_ version: String, _ instance: Door.Instance, at door: Door) async throws {
        let body = Door.repeated(instance, ["software_version": .string(version)])
        let answer = try await door.manage("PUT", instance, body: body)
        #expect(answer.status == 200 && answer.json["software_version"]?.string == version, "\(answer.text)")
    }

    @Test(
        "A disabled version is refused at the token endpoint, and at the next request at each door of each node",
        arguments: TheftTests.Place.allCases)
    func disabled(_ place: TheftTests.Place) async throws {
        try await place.run(editing: { ResourceInstanceTests.file($0, app: Self.versions) }) { servers in
            let door = try await Door(servers[0])
            let instance = try await door.instance(["software_version": "3.2.0", "assent_platform": "linux"])
            let granted = try await door.ownToken(instance.id, by: instance.key)
            let token = ServerFixture.bearer(try #require(granted.json["access_token"]?.string))
            // The doors for users say what they say to a valid token of an installation, as long as it is one.
            for (version, isServed) in [("3.2.0", true), ("3.1.0", true), ("3.0.0", false), ("9", true)] {
                try await Self.say(version, instance, at: door)
                for server in servers {
                    let call = try await server.send("GET", server.gateway("/app-info"), token)
                    #expect(call.status == (isServed ? 200 : 401), "\(version): \(call.text)")
                    #expect(isServed || call["WWW-Authenticate"]?.contains("invalid_token") == true)
                    for url in [server.oauth("userinfo"), server.json("consents")] {
                        let answer = try await server.send("GET", url, token)
                        #expect(answer.status == (isServed ? 403 : 401), "\(version), \(url): \(answer.text)")
                    }
                }
                let answer = try await door.ownToken(instance.id, by: instance.key)
                #expect(answer.status == (isServed ? 200 : 400))
                #expect(answer.error == (isServed ? nil : "unauthorized_client"))
                #expect(answer.json["assent_error"] == (isServed ? nil : "version_outdated"))
            }
        }
    }

    @Test("A proof beside a token of a disabled version is not spent", arguments: TheftTests.Place.allCases)
    func proofs(_ place: TheftTests.Place) async throws {
        try await place.run(editing: { ResourceInstanceTests.file($0, app: Self.versions) }) { servers in
            let (server, door) = (servers[0], try await Door(servers[0]))
            let instance = try await door.instance(["software_version": "3.2.0"])
            let granted = try await door.ownToken(instance.id, by: instance.key, isBound: true)
            let token = try #require(granted.json["access_token"]?.string)
            let url = server.gateway("/app-info")
            let proof = try await door.proof("GET", url, by: instance.key, token: token)
            let fields = [("Authorization", "DPoP \(token)"), ("DPoP", proof)]
            try await Self.say("3.0.0", instance, at: door)
            #expect(try await server.send("GET", url, fields).status == 401)
            try await Self.say("3.2.0", instance, at: door)
            #expect(try await server.send("GET", url, fields).status == 200)
            #expect(try await server.send("GET", url, fields).status == 401)
        }
    }

    @Test("Who registers with a version that may not, or with ten kilobytes of it, is told why")
    func registers() async throws {
        try await Door.run(app: Self.versions) { door in
            for (version, reason) in [
                ("3.1.0", "version_outdated"), ("3.0.0", "version_outdated"), ("9", "version_unknown"),
                (String(repeating: "9", count: 10 << 10), nil),
            ] {
                let answer = try await door.register(
                    try ProofKey(), token: try await door.initialToken(), ["software_version": .string(version)])
                #expect(answer.status == 400 && answer.error == "invalid_client_metadata", "\(answer.text)")
                #expect(answer.json["assent_error"]?.string == reason)
            }
            let instance = try await door.instance([
                "software_version": "3.2.0", "assent_platform": "linux", "assent_device_name": "Ana's laptop",
            ])
            let listed = try await door.act("listRegistrations", ["app": "pay"])
            let shown = try #require(listed.json["result"]?.array?.first)
            #expect(shown["clientId"]?.string == instance.id && shown["version"] == "3.2.0")
            #expect(shown["platform"] == "linux" && shown["deviceName"] == "Ana's laptop")
            #expect(shown["name"] == nil && shown["usedAt"]?.integer != nil)
        }
    }

    @Test("With open registration whoever asks is registered, and a token is refused")
    func open() async throws {
        try await Door.run(registration: "open") { door in
            #expect(try await door.register(try ProofKey(), token: nil).status == 201)
            let refused = try await door.register(try ProofKey(), token: try await door.initialToken())
            #expect(refused.status == 401 && refused.error == "invalid_token")
            // The key is proved all the same.
            #expect(try await door.register(try ProofKey(), token: nil, proofs: []).status == 400)
        }
    }
}
