// The examples of AssentSigning, of the façade's device, and of OCRA's URIs.
import Assent
import AssentEvidence
import AssentOTP
import AssentSigning

// What an app brings along: its screens.
protocol SigningScreen: Sendable {
    func show(_ enrolment: SigningEnrolment) async
    func ask(
        _ displayed: SigningDisplay, _ options: [SigningTransaction.Status]
    ) async -> (status: String, number: String?)
}

func signOnDevice(_ device: SigningDevice, qrCode: String, screen: some SigningScreen) async throws {
    // snippet: signing-device begin
    let enrolment = try await device.enrol(SigningInvite(scanned: qrCode), name: "Ana's laptop")
    await screen.show(enrolment)  // the user types its digits into the page that shows the QR code

    let container = try await device.container(enrolment.containerID).activated()
    for id in try await container.transactionIDs(wait: 25) {
        let transaction = try await device.retrieveTransactionInfo(id).transaction()
        let answer = await screen.ask(transaction.displayed, transaction.allowedStatuses)
        try await transaction.setStatus(answer.status, number: answer.number)
    }
    // snippet: signing-device end
}

func signInAnApp(_ assent: Assent, qrCode: String, screen: some SigningScreen) async throws {
    // snippet: signing-facade begin
    let enrolment = try await assent.device.enrol(SigningInvite(scanned: qrCode), name: "Ana's laptop")
    await screen.show(enrolment)  // the user types its digits into the page that shows the QR code
    for try await transaction in try await assent.device.transactions() {
        let answer = await screen.ask(transaction.displayed, transaction.allowedStatuses)
        try await transaction.setStatus(answer.status, number: answer.number)
    }
    // snippet: signing-facade end
}

func answerChallenge(_ challenge: String) throws -> String {
    // snippet: ocra-uri begin
    let account = try OCRAAuthURI("otpauth://ocra/Bank:ana?secret=…&suite=OCRA-1%3AHOTP-SHA256-8%3AQN08")
    let answer = try account.ocra().code(.init(challenges: [challenge]))
    // snippet: ocra-uri end
    return answer
}

func proof(in bundle: [UInt8], identityKey: [UInt8]) throws -> String {
    // snippet: evidence begin
    let verifier = try EvidenceVerifier(trusting: JWK(JSONValue.parse(identityKey)))
    let judgement = try verifier.judge(bundle)
    guard judgement.isAccepted, let decision = judgement.decisions.first else {
        return "not proved: \(judgement.contradicted)"
    }
    return "\(decision.transactionID) was answered with \(decision.status), for: \(decision.texts)"
    // snippet: evidence end
}
