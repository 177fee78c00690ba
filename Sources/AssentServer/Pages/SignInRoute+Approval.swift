import AssentCore
import AssentEngine
import Hummingbird

/// Approving a transaction. The server knows where it stands, so that reloading, going back and a second click show
/// just that.
extension SignInRoute {
    /// Shows where a transaction stands. Looking does not begin it.
    func look(at transactionID: String, _ visit: SignInVisit) async throws -> Response {
        let stage = try await authentication.stage(transactionID: transactionID, visit.step(cookie))
        switch stage {
        case .waiting:
            let language = visit.frame.language
            return PageDocument(
                title: language[.approveRequest], body: SignInPages.beginning(visit.address(), language),
                frame: visit.frame
            ).response()
        case .page(let waiting): return show(waiting, visit, nil, nil)
        case .approved(let isSafe):
            guard let target = visit.target else { return visit.says(.approved, 200) }
            if isSafe { return go(to: target.url, from: target, visit) }
            // Led there, the browser would read what is at the URL, and its user would take that for what came of it.
            return visit.says(.approvedUnsent(back: home(of: target)), 200)
        case .used: return visit.says(.used, 200)
        case .declined, .unanswered, .noDevice, .failed:
            return visit.says(.notApproved(Self.reason(stage), back: visit.target.flatMap(home)), 401)
        }
    }

    /// Why nothing was approved, in a sentence for the user.
    static func reason(_ stage: ApprovalStage) -> PageText {
        switch stage {
        case .declined: .declinedText
        case .unanswered: .unansweredText
        case .noDevice: .noDeviceText
        case .waiting, .page, .approved, .used, .failed: .wrongAnswerText
        }
    }

    /// The page that the operator names for those who have decided on a request of a route. The gateway itself is no
    /// such page: a policy need not cover it, and a service need not have one there.
    private func home(of target: ReturnTarget) -> String? {
        guard case .resource = target.kind, let resource = try? CanonicalResource(target.url) else { return nil }
        return GatewayRoute.answering(resource.path, of: routes)?.home.map { home in
            home.hasPrefix("/") ? target.origin + home : home
        }
    }

    /// Begins a transaction's journey, or takes the answer to a page of it. What comes of it, the next look says.
    func approve(_ form: SignInForm, _ visit: SignInVisit) async throws -> Response {
        var step = visit.beginning(cookie)
        step.answer = form.answer
        do {
            _ = try await authentication.authenticate(step)
        } catch let error as EngineError where error.isFailedSignIn || error.isStale || error == .transactionUnreadable
        {}
        return Self.seeOther(visit.address())
    }
}
