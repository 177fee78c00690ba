import AssentCore
import AssentJOSE
import AssentSigningProtocol
import AssentTesting
import Foundation
import Testing

@testable import AssentServer

@Suite("35: The device configuration over HTTP")
struct DeviceConfigurationRouteTests {
    /// The key's file, which is gone after the test.
    private final class KeyFile: Sendable {
        let path = NSTemporaryDirectory() + "/assent-device-key-" + SystemRandom().uuid() + ".pem"
        let key: SoftwareSigningKey

        init() throws {
            key = try .generate(.es256)
            let base64 = Data(key.privateKey.revealBytes()).base64EncodedString(
                options: [.lineLength64Characters, .endLineWithLineFeed])
            let text = "-----BEGIN PRIVATE KEY-----\n\(base64)\n-----END PRIVATE KEY-----\n"
            try PrivateFile.create(path, Array(text.utf8))
        }

        deinit { try? FileManager.default.removeItem(atPath: path) }

        /// The file of a server whose realm tells its app.
        func file(_ text: String, _ lines: String = "") -> String {
            RegistrationDoor.file(text, "\n        minimumVersion: \"3.0\"" + lines).replacing(
                "    apps:\n",
                with: "    deviceConfig: {keyFile: \(path), environment: test}\n    apps:\n", maxReplacements: 1)
        }

        func content(_ answer: Answer) throws -> DeviceConfigurationContent {
            let message = try UnverifiedJWS.parse(answer.text, limit: DeviceConfigurationContent.limit)
            let verified = try message.verified(with: ProtocolKey(key).jwk, algorithms: [.es256])
            return try DeviceConfigurationContent(
                plaintext: verified.payload, limit: DeviceConfigurationContent.limit)
        }
    }

    private static let query = "?app=pay&version=3.2.0&platform=linux"
    private static let versions = "\n        versions: {\"3.2.0\": {status: loginOnly}, default: {status: enabled}}"

    @Test("The metadata says where it is; it is signed, has a tag, and with the tag there is nothing to send")
    func answered() async throws {
        let file = try KeyFile()
        try await ServerFixture.run(editing: { file.file($0, Self.versions) }) { fixture in
            let metadata = try await fixture.send("GET", fixture.oauth(".well-known/openid-configuration"))
            let endpoint = try #require(metadata.json["assent_device_config_endpoint"]?.string)
            #expect(endpoint == fixture.published(fixture.oauth("device_config")))
            let url = fixture.oauth("device_config") + Self.query
            let answer = try await fixture.send("GET", url)
            #expect(answer.status == 200 && answer["content-type"] == "application/jwt", "\(answer.text)")
            #expect(answer["cache-control"] == "no-cache")
            let content = try file.content(answer)
            #expect(content.audience == "pay/linux/test" && content.appVersion == "3.2.0")
            #expect(content.status == .loginOnly && content.payloadEncryption == .on)
            #expect(content.minimumVersion?.text == "3.0")
            let tag = try #require(answer["etag"])
            for value in [tag, "\"x\", \(tag)", "W/\(tag)"] {
                let same = try await fixture.send("GET", url, [("If-None-Match", value)])
                #expect(same.status == 304 && same.bytes.isEmpty && same["etag"] == tag, "\(value)")
            }
            let other = try await fixture.send("GET", url, [("If-None-Match", "\"x\"")])
            #expect(other.status == 200)
        }
    }

    @Test("What is asked wrongly, or about an app that there is not, is refused")
    func refused() async throws {
        let file = try KeyFile()
        try await ServerFixture.run(editing: { file.file($0) }) { fixture in
            let url = fixture.oauth("device_config")
            for (query, status) in [
                ("", 400), ("?app=pay&version=1", 400), ("?app=pay&platform=linux", 400),
                ("?app=pay&app=pay&version=1&platform=linux", 400), ("?app=pay&version=1&platform=a%2Fb", 400),
                ("?app=pay&version=1%200&platform=linux", 400), ("?app=other&version=1&platform=linux", 404),
            ] {
                let answer = try await fixture.send("GET", url + query)
                #expect(answer.status == status, "\(query): \(answer.text)")
                #expect(answer.error == (status == 404 ? "not_found" : "invalid_request"))
            }
            #expect(try await fixture.send("POST", url + Self.query).status == 405)
        }
    }

    @Test("A realm without it says so")
    func without() async throws {
        try await ServerFixture.run(editing: { RegistrationDoor.file($0) }) { fixture in
            let metadata = try await fixture.send("GET", fixture.oauth(".well-known/openid-configuration"))
            #expect(metadata.json["assent_device_config_endpoint"] == nil)
            #expect(try await fixture.send("GET", fixture.oauth("device_config") + Self.query).status == 404)
        }
    }

    #if PostgreSQL && os(Linux)
    @Test("Nodes with one file tell the same; one that has a newer file tells a higher number")
    func nodes() async throws {
        let file = try KeyFile()
        try await TwoNodes.run(editingBoth: { file.file($0) }) { nodes in
            var told: [DeviceConfigurationContent] = []
            for node in nodes.both {
                told.append(try file.content(try await node.send("GET", node.oauth("device_config") + Self.query)))
            }
            #expect(told.first?.version == told.last?.version)
        }
        try await TwoNodes.run(
            editing: { $0.replacing("minimumVersion: \"3.0\"", with: "minimumVersion: \"3.1\"") },
            editingBoth: { file.file($0) }
        ) { nodes in
            func told(_ node: ServerFixture) async throws -> DeviceConfigurationContent {
                try file.content(try await node.send("GET", node.oauth("device_config") + Self.query))
            }
            let (old, new) = (try await told(nodes.first), try await told(nodes.second))
            #expect(new.version > old.version)
            #expect(old.minimumVersion?.text == "3.0" && new.minimumVersion?.text == "3.1")
        }
    }
    #endif

    @Test("A file whose key or environment cannot be used is refused")
    func files() throws {
        let file = try KeyFile()
        let text = FixtureConfiguration.yaml(upstream: 9080, refusing: 9081)
        func message(_ change: (String) -> String) -> String? {
            do {
                _ = try ServerConfiguration.parse(change(text), file: NSTemporaryDirectory() + "/assent.yaml")
                return nil
            } catch {
                return "\(error)"
            }
        }
        #expect(message { file.file($0) } == nil)
        for (find, replacement, expected) in [
            ("environment: test", "environment: a/b", "1 to 64 letters"),
            (file.path, "/nowhere/key.pem", "/nowhere/key.pem"), ("keyFile: \(file.path), ", "", "keyFile"),
            ("environment: test", "environment: test, more: 1", "unknown key"),
            ("minimumVersion: \"3.0\"", "minimumVersion: newest", "1 to 8 numbers"),
            (
                "    deviceConfig: {keyFile: \(file.path), environment: test}\n", "",
                "minimumVersion belongs to deviceConfig"
            ),
        ] {
            let found = message { file.file($0).replacing(find, with: replacement) }
            #expect(found?.contains(expected) == true, "\(found ?? "nothing")")
        }
        // A second realm with an app of the same id, told by the same key.
        func both(_ environment: String) -> String? {
            message {
                file.file($0).replacing(
                    "  beta:\n",
                    with: """
                          beta:
                            deviceConfig: {keyFile: \(file.path), environment: \(environment)}
                            apps:
                              pay:
                                redirectURIs: ["http://127.0.0.1/callback"]
                                scopes: [openid]
                                idTokenAlgorithm: ES256

                        """, maxReplacements: 1)
            }
        }
        #expect(both("other") == nil, "\(both("other") ?? "")")
        #expect(both("test")?.contains("same key and environment") == true, "\(both("test") ?? "nothing")")
        let noApps = message {
            let clients = "    clients:\n      bank-app:\n"
            return $0.replacing(
                clients, with: "    deviceConfig: {keyFile: \(file.path)}\n" + clients, maxReplacements: 1)
        }
        #expect(noApps?.contains("is for apps") == true, "\(noApps ?? "nothing")")
    }
}
