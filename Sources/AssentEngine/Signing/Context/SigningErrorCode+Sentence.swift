package import AssentSigningProtocol

extension SigningErrorCode {
    /// What an error of this code says when it says nothing else.
    var sentence: String { Self.sentences[self] ?? "The request is refused." }

    /// The codes that the server sends.
    package static var sent: Set<Self> { Set(sentences.keys) }

    static let sentences: [Self: String] = [
        .invalidRequest: "The request is malformed.",
        .versionUnsupported: "The server knows version 1 of the protocol only.",
        .unknownKey: "The request is encrypted to a key that the server does not use. Read the configuration again.",
        .useNonce: "Repeat the request with the nonce of TSP-Nonce.",
        .badProof: "The proof of possession is not good.",
        .replay: "The proof was used before.",
        .unknownContainer: "There is no such container.",
        .containerBlocked: "The container is blocked.",
        .containerSuspect: "The container may have been copied. The user must authenticate.",
        .containerRevoked: "The container has ended.",
        .approvalsNotYet: "The container is new and may not approve yet.",
        .keyExpired: "The keys of the container have expired.",
        .keyRetired: "The key was replaced.",
        .invalidCode: "The code is not valid. Ask for a new one.",
        .deviceLimit: "The user has as many devices as allowed. Remove one first.",
        .ruleUnsupported: "The device cannot do what the server asks for.",
        .commitmentChanged: "The enrolment was changed on its way. Begin again with a new code.",
        .enrolmentVoid: "The enrolment has ended. Begin again with a new code.",
        .freshAuthenticationRequired: "Authenticate again first.",
        .digitsWrong: "These are not the digits of the device.",
        .transactionUnknown: "There is no such transaction.",
        .transactionNotFetched: "Fetch the transaction first.",
        .transactionExpired: "The transaction has expired.",
        .transactionCanceled: "The transaction was canceled.",
        .transactionFailed: "The transaction has failed.",
        .alreadyDecided: "The transaction is already decided.",
        .statusNotAllowed: "The document does not allow this status.",
        .hashMismatch: "The decision does not fit the document.",
        .badSignature: "The signature of the decision is not good.",
        .matchWrong: "The number is wrong.",
        .matchUsed: "The number was already tried.",
        .unlockRequired: "Enter the password first.",
        .locked: "The password is locked after too many tries. Authenticate to unlock it.",
        .wait: "Wait before the next try.",
        .shredded: "The keys that the password opens were destroyed. Reset the password.",
        .wrongGeneration: "The password was changed. Ask for the status.",
        .passwordExpired: "The password has expired. Change it first.",
        .passwordTooYoung: "The password was set only now, and cannot be changed yet.",
        .serverRolledBack: "The server was restored from a backup. Authenticate to go on.",
        .tooLarge: "The request is too large.",
        .rateLimited: "There were too many requests. Try again later.",
        .busy: "The server is busy. Repeat the same request later.",
        .unavailable: "The server cannot answer now. Repeat the same request later.",
        .notFound: "It does not exist.",
        .unauthorized: "Sign in, or present an access token with the scope signing.",
        .forbidden: "The caller may not do this.",
    ]
}
