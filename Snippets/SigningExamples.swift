// The examples of AssentSigning.
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
