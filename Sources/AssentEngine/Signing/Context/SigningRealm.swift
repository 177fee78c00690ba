import AssentCore
import AssentSigningProtocol
import AssentStore
import Logging

/// What all questions about one issuer's transaction signing need.
package struct SigningRealm: Sendable {
    let settings: SigningSettings
    let store: SigningStore
    let keys: SigningServerKeys
    /// Where calls wait for what other nodes do.
    let bell: SigningBell
    /// Counts calls, codes and proofs.
    let attempts: AttemptCounter
    /// The keys of devices that have called lately.
    let deviceKeys = DeviceKeys()
    /// The offers of containers that have called lately.
    let offers = KnownOffers()
    /// The evaluations that are known to be the issuer's.
    let evaluations = KnownEvaluations()
    /// Who tells users what happens.
    let notifier: any Notifier

    /// An issuer's transaction signing on a context's database.
    init(_ context: EngineContext, settings: SigningSettings, notifier: (any Notifier)?) {
        self.settings = settings
        store = SigningStore(context, issuer: settings.issuer)
        keys = SigningServerKeys(store)
        bell = SigningBell(context)
        attempts = AttemptCounter(context)
        self.notifier = notifier ?? LogNotifier(context.logger)
    }
}

/// A question about transaction signing: a type that holds what it decides, beside its statements and rows. Each can
/// ask the others.
package protocol SigningPart: Sendable {
    var realm: SigningRealm { get }
}

extension SigningPart {
    package var settings: SigningSettings { realm.settings }
    var store: SigningStore { realm.store }
    var keys: SigningServerKeys { realm.keys }
    var context: EngineContext { realm.store.context }
    var iss: String { realm.settings.issuer.name }
    /// The time, in seconds since 1970.
    package var now: Int64 { realm.store.now }

    /// Calls of devices, and what the issuer says of itself.
    package var door: SigningDoor { SigningDoor(realm: realm) }
    package var devices: SigningDevices { SigningDevices(realm: realm) }
    /// Invites, by which users get devices.
    package var invites: SigningInvites { SigningInvites(realm: realm) }
    var enrolments: SigningEnrolments { SigningEnrolments(realm: realm) }
    package var slots: SigningSlots { SigningSlots(realm: realm) }
    var documents: SigningDocuments { SigningDocuments(realm: realm) }
    var decisions: SigningDecisions { SigningDecisions(realm: realm) }
    var codes: SigningCodes { SigningCodes(realm: realm) }
    var notices: SigningNotices { SigningNotices(realm: realm) }

    /// Runs what users and relying parties ask for, and names every error as the protocol does.
    func answering<Result>(_ body: () async throws -> Result) async throws(SigningRefusal) -> Result {
        do {
            return try await context.translatingStoreErrors(body)
        } catch {
            if !(error is SigningRefusal) { context.logger.error("signing failed", metadata: ["error": "\(error)"]) }
            throw SigningRefusal(answering: error)
        }
    }

    /// What every reply to a device has.
    func head(_ request: DeviceRequest) -> SigningReplyHead {
        SigningReplyHead(issuer: iss, audience: request.did.text, issuedAt: Int(request.now), request: request.hash)
    }

    /// Encrypts a signed reply for a container.
    func sealed(_ compact: String, for container: SigningContainerRecord) throws -> String {
        try SealedEnvelope.seal(
            Array(compact.utf8), to: ProtocolKey(JSONValue.parse(container.transportJWK)), content: .reply, sender: iss,
            recipient: container.did.text, random: context.random)
    }

    /// Seals a secret of a container under the master key, for this place.
    func sealed(_ secret: Secret, _ name: String, of did: SigningID) throws -> [UInt8] {
        try context.masterKey.seal(secret, for: .signingContainer, context: "\(name) \(did)")
    }

    /// Opens what was sealed for this place.
    func opened(_ sealed: [UInt8], _ name: String, of did: SigningID) throws -> Secret {
        try context.masterKey.open(sealed, for: .signingContainer, context: "\(name) \(did)")
    }

    /// Refuses a caller who has not authenticated in a journey lately, or not strongly enough in it: what a device has
    /// stored can make other sessions at any time, and a step-up keeps their level.
    func requireFreshness(of caller: SigningCaller, at now: Int64) throws(SigningRefusal) {
        let isFresh =
            caller.session.kind == .user && caller.session.isOfJourney
            && now - caller.session.createdAt <= settings.freshness
            && caller.session.journeyLevel >= settings.freshLevel
        guard isFresh else { throw SigningRefusal(.freshAuthenticationRequired) }
    }
}
