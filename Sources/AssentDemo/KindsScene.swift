import Assent
import Foundation
import HTTPTypes

/// Calls of a user, of an installation and of nobody, and what each of them cannot reach.
struct KindsScene: Sendable {
    private let story: Story

    init(_ story: Story) { self.story = story }

    /// Tells of an installation in which nobody has signed in, beside the app in which Ana has.
    func tell(with operating: Assent) async throws {
        story.narration.tell(
            .step(
                number: 10,
                title: "An app calls for its user, for itself and for nobody: each reaches only what is meant for it"))
        let scene = InstallationScene(story)
        let token = try await scene.token(operating, count: 1)
        let assent = try story.makeAssent(vault: "kinds") { configuration, keys in
            configuration.client.id = InstallationScene.app
            configuration.registration = RegistrationConfiguration(keys: keys, initialAccessToken: token)
            configuration.registration?.deviceScopes = ["app-data"]
            configuration.resources[story.gateway] = .accessToken(of: [.user, .implicit, .device])
            // Her sessions belong to the installation's key, and she is remembered by keys of a device.
            configuration.dpop = .installation
            configuration.resources[try Origin(configuration.server).description] = .session
            let place = URL(fileURLWithPath: "\(story.world.directory)/kinds.device")
            configuration.deviceKeys = SoftwareKeyProvider(unprotectedFile: place, clock: story.clock)
            configuration.device.modes = [.device, .assisted]
        }
        let instance = try await scene.register(assent)
        try await callForNobody(assent)
        try await callForInstallation(assent)
        try await callForUser(operating)
        try await RememberedScene(story).tell(with: assent)
        let ended = try await scene.administer(operating, "endRegistration", ["clientId": .string(instance.clientID)])
        story.check("the operator removes the installation", ended.status == 200)
        let error = await ResourceError.thrown { try await assent.deviceClient.sendRequest(.get("app-info")) }
        let isForgotten = try await assent.registration?.current() == nil
        story.check(
            "its next call: 9002, and it has forgotten that it was registered",
            error?.code == .deviceDeregistered && isForgotten)
        await assent.shutdown()
    }

    private func callForNobody(_ assent: Assent) async throws {
        let status = try await assent.deviceClient.sendUnauthenticatedRequest(.get("status"))
        story.check("nobody asks whether the bank is open: 200, without a credential", status.status == 200)
        let refused = try await assent.deviceClient.sendUnauthenticatedRequest(.get("app-info"))
        story.check("nobody asks for the app's data: 401", refused.status == 401)
    }

    private func callForInstallation(_ assent: Assent) async throws {
        try await assent.deviceClient.authenticateDevice(scopes: ["app-data"])
        let data = try await assent.deviceClient.sendRequest(.get("app-info"))
        story.check(
            "the installation asks for them by its own token: 200, and nobody has signed in", data.status == 200)
        let account = try await assent.deviceClient.sendRequest(.get("accounts"))
        story.check("the installation's token at the account: 403 token_kind", account.refusesKind)

        let stolen = StolenToken(
            token: try await assent.tokens.device.token(rejecting: nil), name: "the installation's token",
            missing: "there is a token of the installation to steal")
        try await stolen.present(at: ["at the app's data": "/app-info"], of: story)
    }

    private func callForUser(_ operating: Assent) async throws {
        let greeting = try await operating.userClient.sendAuthenticatedRequest(.get("greeting"))
        story.check("Ana's app asks for her greeting: 200", greeting.status == 200)
        let data = try await operating.userClient.sendAuthenticatedRequest(.get("app-info"))
        story.check("her token at the app's data: 403 token_kind", data.refusesKind)
        let error = await ResourceError.thrown { try await operating.deviceClient.sendRequest(.get("app-info")) }
        story.check(
            "a call of a kind that the app's configuration does not name for the bank: 10101, and nothing is sent",
            error?.code == .hostRefused)
    }
}

extension ResourceResponse {
    /// Whether the route is not for calls of this kind.
    var refusesKind: Bool { status == 403 && (try? JSONValue.parse(data))?["code"] == "token_kind" }
}

extension ResourceError {
    /// Why a call fails; `nil` when it does not.
    static func thrown<Result>(by call: () async throws -> Result) async -> ResourceError? {
        do {
            _ = try await call()
            return nil
        } catch {
            return error as? ResourceError
        }
    }
}
