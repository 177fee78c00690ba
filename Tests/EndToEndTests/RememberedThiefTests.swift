import Assent
import AssentCore
import AssentServer
import AssentStore
import Foundation
import HTTPTypes
import Testing

@testable import AssentCLI
@testable import AssentDemo

/// Somebody who has copied all files of an installation, among them the unprotected ones with the keys of its vault and
/// its containers.
@Suite("A thief with an installation's files after a login by PIN, an implicit one and a sign-out")
struct RememberedThiefTests {
    /// Long enough that no other bytes look like it.
    private static let pin = Secret("7391004288")

    /// The copied files of one of a world's installations.
    private struct Copy {
        let story: Story
        let name: String

        private func path(_ suffix: String) -> String { "\(story.world.directory)/\(name)\(suffix)" }

        /// With what the files are the thief's own.
        init(_ story: Story, of vault: String, as suffix: String = "copy") throws {
            (self.story, name) = (story, vault + "-" + suffix)
            let manager = FileManager.default
            for suffix in ["", ".key", ".device"]
            where manager.fileExists(atPath: "\(story.world.directory)/\(vault)\(suffix)") {
                try manager.copyItem(atPath: "\(story.world.directory)/\(vault)\(suffix)", toPath: path(suffix))
                try manager.setAttributes(
                    [.posixPermissions: suffix.isEmpty ? 0o700 : 0o600], ofItemAtPath: path(suffix))
            }
            for file in try manager.subpathsOfDirectory(atPath: path("")) {
                try manager.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path("/" + file))
            }
        }

        /// What is in the files as they are: raw, in hexadecimal and in base 64.
        func inFiles(_ search: SecretSearch) throws -> Set<String> {
            var found = try search.found(below: path("")).values.reduce(into: Set<String>()) { $0.formUnion($1) }
            for suffix in [".key", ".device"] where FileManager.default.fileExists(atPath: path(suffix)) {
                found.formUnion(search.found(in: Array(try Data(contentsOf: URL(fileURLWithPath: path(suffix))))))
            }
            return found
        }

        /// What is in the vault, which the copied key opens.
        func inVault(_ search: SecretSearch) async throws -> Set<String> {
            try await values().reduce(into: []) { $0.formUnion(search.found(in: $1.revealBytes())) }
        }

        /// The sealed keys behind PINs in the vault.
        func sealedKeys() async throws -> [Secret] {
            try await values().flatMap { value in
                let slots = (try? JSONValue.parse(value.revealBytes()))?["slots"]?.array ?? []
                let keys = slots.flatMap { $0["current"]?["keys"]?.array ?? [] }
                let blobs = keys.compactMap { key in key["blob"]?.string.flatMap { Base64URL.decode($0) } }
                return blobs.filter { !$0.isEmpty }.map { Secret(bytes: $0) }
            }
        }

        private func values() async throws -> [Secret] {
            let keys = SoftwareKeyProvider(unprotectedFile: URL(fileURLWithPath: path(".key")), clock: story.clock)
            let vault = try await FileVault.open(
                URL(fileURLWithPath: path("")), keys: .software(keys), createIfMissing: false, clock: story.clock)
            let names = try await vault.names()
            #expect(!names.isEmpty)
            var values: [Secret] = []
            for name in names { values.append(try #require(try await vault.value(name)).value) }
            return values
        }

        /// The app itself, run by the thief.
        func run(deviceScopes: [String] = []) throws -> Assent {
            try RememberedUserTests.open(story, name, deviceScopes: deviceScopes)
        }

        func plant(_ secret: Secret) throws {
            let text = Data(secret.revealBytes()).base64EncodedString()
            try Data(text.utf8).write(to: URL(fileURLWithPath: path("/planted")))
        }
    }

    /// What a signed-in user has that nobody else may have.
    private static func secrets(of app: Assent, _ login: String) async throws -> [(name: String, secret: Secret)] {
        let user = try #require(try await app.user())
        let (session, tokens) = (try #require(user.session), try await user.token())
        let refresh = tokens.refreshToken.map { [(name: "refresh token of \(login)", secret: $0)] }
        return [
            ("session of \(login)", session.token), ("access token of \(login)", tokens.accessToken.signature),
        ] + (refresh ?? [])
    }

    @Test("30: Neither session, nor token, nor PIN is in them; the implicit login is all that works by them")
    func logins() async throws {
        try await World.run(logger: CollectingLog().logger, editing: RememberedUserTests.configured) { story in
            let app = try await RememberedUserTests.installation(story, "robbed")
            try await story.signIn(app, forcing: false)
            let container = try await app.device.enrol { _ in Self.pin }
            var secrets: [(name: String, secret: Secret)] = [("PIN", Self.pin)]
            secrets += try await Self.secrets(of: app, "the sign-in")
            _ = await app.signOut()
            try await app.logIn(container.userName, pin: Self.pin)
            secrets += try await Self.secrets(of: app, "the PIN")
            _ = await app.signOut()
            try await app.userClient.implicitlyAuthenticate(container.userName, scopes: ["accounts"])
            let implicit = try #require(try await app.tokens.implicit.token(rejecting: nil))
            secrets.append(("implicit access token", implicit.value.signature))
            await app.shutdown()

            let copy = try Copy(story, of: "robbed")
            let search = SecretSearch(secrets)
            #expect(try copy.inFiles(search) == [])
            #expect(try await copy.inVault(search) == [])

            let thief = try copy.run()
            #expect(try await thief.user() == nil)
            #expect(try await thief.tokens.session() == nil)
            #expect(try await thief.tokens.storedTokens() == nil)
            let wrong = await #expect(throws: ResourceError.self) {
                try await thief.logIn(container.userName, pin: Secret("0000000000"))
            }
            #expect(wrong?.number == 9009)
            try await thief.userClient.implicitlyAuthenticate(container.userName, scopes: ["accounts"])
            #expect(try await thief.tokens.implicit.token(rejecting: nil) != nil)
            let refused = await #expect(throws: ResourceError.self) {
                try await thief.userClient.sendAuthenticatedRequest(.get(story.transfers))
            }
            #expect(refused?.number == 9010)
            await #expect(throws: (any Error).self) { try await thief.device.enrol { _ in Self.pin } }
            await thief.shutdown()
        }
    }

    /// What the gateway answers to who presents this as the token of a session, at the user's account.
    private static func status(_ session: String, _ story: Story) async throws -> Int {
        let name = try #require(HTTPField.Name(story.world.endpoints.cookieName))
        return try await story.plain([name: session])
    }

    @Test("30: With the database as well, what implicit tokens and the installation's own open is all that works")
    func both() async throws {
        try await World.run(logger: CollectingLog().logger, editing: RequestKindsTests.remembering) { story in
            let operating = try story.makeAssent(vault: "operator")
            try await story.signIn(operating, forcing: false)
            let token = try await InstallationScene(story).initialAccessToken(operating)
            let app = try RememberedUserTests.open(story, "robbed", registeringBy: token, deviceScopes: ["app-data"])
            try await story.signIn(app, forcing: false)
            let container = try await app.device.enrol { _ in Self.pin }
            var secrets: [(name: String, secret: Secret)] = [("PIN", Self.pin)]
            secrets += try await Self.secrets(of: app, "the sign-in")
            _ = await app.signOut()
            try await app.logIn(container.userName, pin: Self.pin)
            secrets += try await Self.secrets(of: app, "the PIN")
            await app.shutdown()

            let search = SecretSearch(secrets)
            #expect(try search.found(below: story.world.configuration.dataDirectory).isEmpty)
            // Sessions that live are looked up by what is no session's token; the control is one.
            let own = try #require(try await operating.tokens.session()).token
            #expect(try await Self.status(own.reveal(), story) == 200)
            let stored = try await story.world.rows("SELECT id FROM sessions").map { try $0.text("id") }
            #expect(!stored.isEmpty)
            for id in stored { #expect(try await Self.status(id, story) == 401) }

            let thief = try Copy(story, of: "robbed").run(deviceScopes: ["app-data"])
            try await thief.userClient.implicitlyAuthenticate(container.userName, scopes: ["profile"])
            try await thief.deviceClient.authenticateDevice(scopes: ["app-data"])
            var opened: [String] = []
            for path in ["/accounts", "/transfers", "/greeting", "/app-info"] {
                let request = ResourceRequest.get(story.gateway + path)
                let implicit = try await thief.userClient.sendImplicitRequest(request).status
                let device = try await thief.deviceClient.sendRequest(request).status
                if implicit == 200 { opened.append("implicit \(path)") }
                if device == 200 { opened.append("device \(path)") }
            }
            #expect(opened == ["implicit /greeting", "device /app-info"])
            for scope in ["accounts", "openid"] {
                let more = await #expect(throws: ResourceError.self) {
                    try await thief.userClient.implicitlyAuthenticate(container.userName, scopes: [scope])
                }
                #expect(more?.number == 10001)
            }
            for assent in [thief, operating] { await assent.shutdown() }
        }
    }

    @Test("30: The key behind a PIN that was destroyed is gone; in an older copy it is, and the PIN opens it no more")
    func shredded() async throws {
        try await World.run(logger: CollectingLog().logger, editing: RememberedUserTests.configured) { story in
            let app = try await RememberedUserTests.installation(story, "robbed")
            try await story.signIn(app, forcing: false)
            let container = try await app.device.enrol { _ in Self.pin }
            await app.shutdown()

            // The control: what is looked for is found where it is.
            let before = try Copy(story, of: "robbed", as: "before")
            let keys = try await before.sealedKeys()
            try #require(!keys.isEmpty)
            let search = SecretSearch(keys.map { ("key behind the PIN", $0) })
            #expect(try before.inFiles(search) == [])
            #expect(try await before.inVault(search) == ["key behind the PIN"])

            let again = try RememberedUserTests.open(story, "robbed")
            let wiped = try await again.send(
                .post(
                    "\(story.signing(again))/containers/\(container.id)",
                    json: ["action": "wipe", "slot": "signing"], headers: [.requestedWith: "test"]))
            #expect(wiped.status == 200)
            let known = try #require(try await again.device.containers().first)
            let told = try await known.status()
            #expect(told.passwords.map(\.state) == [.shredded])
            await again.shutdown()
            let after = try Copy(story, of: "robbed", as: "after")
            #expect(try await after.sealedKeys().isEmpty)
            #expect(try after.inFiles(search) == [])
            #expect(try await after.inVault(search) == [])

            let thief = try before.run()
            let ended = await #expect(throws: ResourceError.self) {
                try await thief.logIn(container.userName, pin: Self.pin)
            }
            #expect(ended?.number == 9003)
            await thief.shutdown()
        }
    }

    @Test("30: A refresh token that was left there is found in the opened vault, and in a file, and is used")
    func control() async throws {
        try await World.run(logger: CollectingLog().logger, editing: RememberedUserTests.configured) { story in
            let app = try await RememberedUserTests.installation(story, "robbed")
            try await story.signIn(app, forcing: false)
            let tokens = try await app.tokens.tokens()
            let session = try #require(try await app.tokens.session())
            let planted = try #require(tokens.refreshToken)
            await app.shutdown()

            let copy = try Copy(story, of: "robbed")
            let search = SecretSearch([("refresh token", planted), ("session", session.token)])
            #expect(try copy.inFiles(search) == [])
            #expect(try await copy.inVault(search) == ["refresh token", "session"])
            let thief = try copy.run()
            let renewed = try await thief.tokens.refresh()
            #expect(renewed.accessToken != tokens.accessToken)
            #expect(try await story.balance(thief) == "1000.00")
            await thief.shutdown()
            try copy.plant(planted)
            #expect(try copy.inFiles(search) == ["refresh token"])
        }
    }
}
