import AssentCore

extension EngineError {
    /// A stable name for what is wrong. Others may be added.
    package struct Code: ErrorCode {
        /// The name, for example `stepExpired`.
        package let rawValue: String

        /// A code of that name.
        package init(rawValue: String) { self.rawValue = rawValue }

        /// What an error of this code says when it says nothing else.
        var sentence: String { Self.sentences[self] ?? "The request cannot be served." }

        /// All codes of the engine.
        package static var all: Set<Code> { Set(sentences.keys) }
    }
}

extension EngineError.Code {
    /// The request is malformed.
    package static let invalidRequest = Self("invalidRequest")

    /// The realm does not exist; `subject` is its name.
    package static let unknownRealm = Self("unknownRealm")

    /// The realm has no such journey, or none that may be begun in this way.
    package static let unknownJourney = Self("unknownJourney")

    /// A way to choose a journey that does not exist (`authIndexType`).
    package static let unknownIndexType = Self("unknownIndexType")

    /// The pointer to the step is missing or malformed; `detail` says how.
    package static let authIDUnreadable = Self("authIDUnreadable")

    /// The pointer to the step was not signed by this server.
    package static let authIDInvalid = Self("authIDInvalid")

    /// The journey took too long, or its step is no longer known.
    package static let stepExpired = Self("stepExpired")

    /// The step was answered, too long ago to answer it again.
    package static let stepAlreadyAnswered = Self("stepAlreadyAnswered")

    /// The step was answered, with another answer.
    package static let stepAnsweredDifferently = Self("stepAnsweredDifferently")

    /// Another request answers the step at this moment.
    package static let stepBeingAnswered = Self("stepBeingAnswered")

    /// The answer has more or fewer callbacks than the step.
    package static let wrongCallbackCount = Self("wrongCallbackCount")

    /// The answer lacks a callback of the step.
    package static let missingCallback = Self("missingCallback")

    /// A value of the answer is not what its callback asks for; `subject` is its place on the page, for example `2`,
    /// and `detail` says what it must be.
    package static let invalidAnswer = Self("invalidAnswer")

    /// The suspended journey is unknown, or can no longer be continued.
    package static let suspendedJourneyUnknown = Self("suspendedJourneyUnknown")

    /// The journey ended without success.
    package static let loginFailed = Self("loginFailed")

    /// The user declined what the journey asked them to approve, or typed a wrong number on the device.
    package static let declined = Self("declined")

    /// Nobody answered on a device in time.
    package static let approvalExpired = Self("approvalExpired")

    /// The user has no device that could answer.
    package static let noDevice = Self("noDevice")

    /// There were too many attempts for this account.
    package static let accountLocked = Self("accountLocked")

    /// The user may not sign in.
    package static let userInactive = Self("userInactive")

    /// Another user than the one of the session was authenticated.
    package static let differentUser = Self("differentUser")

    /// The transaction cannot be approved here: unknown, expired, of another session, or in another state.
    package static let transactionUnreadable = Self("transactionUnreadable")

    /// There is no live session, or none of this realm.
    package static let sessionRequired = Self("sessionRequired")

    /// The caller may not do this.
    package static let forbidden = Self("forbidden")

    /// The credentials are valid, and of a kind that opens nothing here (``Door``). It is named as on every wire.
    package static let tokenKind = Self("token_kind")

    /// A session of the kind `stateless` was asked for, and not by an installation of an app that allows it.
    package static let statelessRefused = Self("statelessRefused")

    /// The request has come plainly, and calls of this version of the app must be sealed
    /// (docs/payload-encryption.md). It is named as on every wire.
    package static let payloadEncryptionRequired = Self("payload_encryption_required")

    /// The request has come through a session of payload encryption that is not of the installation whose credentials
    /// it has (docs/payload-encryption.md). It is named as on every wire.
    package static let payloadEncryptionMismatch = Self("payload_encryption_mismatch")

    /// What the request is about does not exist.
    package static let notFound = Self("notFound")

    /// The realm has no such policy set; `subject` is its name.
    package static let unknownPolicySet = Self("unknownPolicySet")

    /// A question about no resources, or about too many.
    package static let invalidResources = Self("invalidResources")

    /// The change would leave nobody who is an administrator.
    package static let lastAdministrator = Self("lastAdministrator")

    /// There is one of that name already; `subject` is its name.
    package static let exists = Self("exists")

    /// The request's content is too large.
    package static let tooLarge = Self("tooLarge")

    /// The request's content has another media type than it must have.
    package static let unsupportedMediaType = Self("unsupportedMediaType")

    /// There were too many requests of this kind: try again later.
    package static let tooManyRequests = Self("tooManyRequests")

    /// The server has too much to do: try again later.
    package static let busy = Self("busy")

    /// The database cannot serve: nothing was changed, try again later.
    package static let unavailable = Self("unavailable")

    /// Nobody knows whether it was done: the database gave no answer to a COMMIT, and it may still become true.
    package static let outcomeUnknown = Self("outcomeUnknown")

    /// The engine or its database is broken, or set up wrongly.
    package static let internalFailure = Self("internalFailure")

    private static let sentences: [Self: String] = [
        .invalidRequest: "The request is malformed.",
        .unknownRealm: "The realm does not exist.",
        .unknownJourney: "There is no such journey.",
        .unknownIndexType: "The authIndexType is not known.",
        .authIDUnreadable: "malformed",
        .authIDInvalid: "The authId was not signed by this server.",
        .stepExpired: "The journey has expired.",
        .stepAlreadyAnswered: "This step was answered before.",
        .stepAnsweredDifferently: "This step was answered before, with another answer.",
        .stepBeingAnswered: "This step is being answered. Send the same answer again.",
        .wrongCallbackCount: "The answer has another number of callbacks than the step.",
        .missingCallback: "The answer lacks a callback of the step.",
        .invalidAnswer: "is not what its callback asks for.",
        .suspendedJourneyUnknown: "The suspended journey is unknown or has expired.",
        .loginFailed: "The journey ended without success.",
        .declined: "It was declined, or a wrong number was typed on the device.",
        .approvalExpired: "Nobody answered on the device in time.",
        .noDevice: "The user has no device that could answer.",
        .accountLocked: "The account is locked for now.",
        .userInactive: "The user is not active.",
        .differentUser: "Another user than the one of the session was authenticated.",
        .transactionUnreadable: "The transaction cannot be approved here.",
        .sessionRequired: "A live session is needed.",
        .forbidden: "The caller may not do this.",
        .tokenKind: "Credentials of this kind are not accepted here.",
        .statelessRefused:
            "This app may not sign users in so that nothing is left (stateless), or its key was not proved.",
        .payloadEncryptionRequired:
            "Calls of this version of the app must be sealed: send it again with payload encryption (pe1).",
        .payloadEncryptionMismatch:
            "The session of payload encryption is not of this installation: begin one by its key (role device).",
        .notFound: "Resource cannot be found.",
        .unknownPolicySet: "There is no such policy set.",
        .invalidResources: "The question names no resource, or too many.",
        .lastAdministrator: "This user is the last administrator of the realm: give another user the role first.",
        .exists: "There is one of that name already.",
        .tooLarge: "The request is too large.",
        .unsupportedMediaType: "The request has a media type that is not supported here.",
        .tooManyRequests: "There were too many requests. Try again later.",
        .busy: "The server is busy. Try again later.",
        .unavailable: "The server cannot reach its database. Try again later.",
        .outcomeUnknown: "It is not known whether this was done. Look before you do it again.",
        .internalFailure: "The server failed. Its log says why.",
    ]
}
