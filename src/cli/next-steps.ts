import type { PlanView } from '../api/views.ts';

/** What the lines are about. */
export interface NextSteps {
  readonly url: string;
  /** Null: the server asks for none. */
  readonly agentKey: string | null;
  readonly project: string;
  /** The example plan as it was seen last. */
  readonly plan: PlanView;
}

/** What a newcomer can try, as commands to copy. Only says that the plan waits when it does. */
export function nextSteps({ url, agentKey, project, plan }: NextSteps): readonly string[] {
  const approval = plan.pending.find((pending) => pending.gate === 'select_tool');
  const withPlan: readonly Command[] =
    approval === undefined
      ? [[`npx agents plan status ${plan.plan_id}`, `where it is: ${plan.phase}/${plan.state}`]]
      : [
          ['npx agents approvals list', 'what waits for you'],
          [`npx agents plan diff ${plan.plan_id}`, 'what it would change'],
          [`npx agents approvals approve ${approval.approval_id}`, 'shows it again and asks'],
        ];
  const what = `An example plan of the action ${plan.action_name}`;
  return [
    '',
    approval === undefined ? `${what} was started:` : `${what} has made its changes and waits for your approval:`,
    '',
    ...aligned([...withPlan, [`npx agents project show ${project}`, 'the project that it works on']]),
    '',
    agentKey === null ? 'As any A2A client:' : "As any A2A client, with the agent's key:",
    '',
    ...sendMessage(url, agentKey, 'read README.md'),
  ];
}

/** A command and what it is for. */
type Command = readonly [command: string, purpose: string];

function aligned(commands: readonly Command[]): readonly string[] {
  const width = Math.max(...commands.map(([command]) => command.length));
  return commands.map(([command, purpose]) => `  ${command.padEnd(width)}   # ${purpose}`);
}

/** A standard A2A 1.0 message; its text is one of the commands in docs/commands.md. */
function sendMessage(url: string, key: string | null, text: string): readonly string[] {
  const message = { messageId: 'hello-1', role: 'ROLE_USER', parts: [{ text }] };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } });
  return [
    `  curl -s ${url}/a2a \\`,
    `    ${key === null ? '' : `-H 'Authorization: Bearer ${key}' `}-H 'A2A-Version: 1.0' -H 'Content-Type: application/json' \\`,
    `    -d '${body}'`,
  ];
}
