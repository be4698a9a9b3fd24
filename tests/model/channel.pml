/*
 * Model of the channel: handshake, multiplexing over two priorities, credits, the two RESETs that
 * end a stream, EOF, cancellation (KILL), SHUTDOWN and BYE, and a carrier that may end at any
 * moment. State names are those of lib/conn/chan_i.h and host/channel/channel.h.
 *
 * The window is WINDOW bytes (one byte a DATA frame), one STDIN and one STDOUT stream, N bytes to
 * each. The carrier holds CARRIER frames a direction; control overtakes data in the senders'
 * queues but not on the carrier. Sinks may stop for as long as they like.
 *
 * Checked: no invalid end state; each byte once and in order (numbered bytes); queues and receive
 * buffers within the window; never a frame for a stream that the receiver has forgotten; EXITED
 * is told only after all output.
 *
 * Mutants that it catches: credit never returned (stuck), EXITED not held back, credit not counted,
 * data that overtakes control.
 *
 *	-DCUT      the carrier may end at any moment: everybody stops, nothing hangs
 *	-DRESETS   the user's reader may go away, so that the host resets the output
 */
#define WINDOW 1
#define N 2
#define CARRIER 1

mtype = { HELLO, REPLY, OPEN_IN, OPEN_OUT, DATA, EOF, RESET, CREDIT, RUN, EXITED, KILL, SHUTDOWN,
	  BYE, READY, GONE };
mtype = { CHAN_WAIT_HELLO, CHAN_WAIT_REPLY, CHAN_OPEN, CHAN_DEAD };
mtype = { TX_NONE, TX_OPEN, TX_EOF, TX_RESET_QUEUED, TX_RESET };
mtype = { RX_NONE, RX_OPEN, RX_EOF, RX_RESET };

#define IN 0
#define OUT 1

/* frame: type, stream, value (byte number or credit) */
chan to_guest = [CARRIER] of { mtype, byte, byte };
chan to_host = [CARRIER] of { mtype, byte, byte };
/* unsealed queues: control, and data with EOF and RESET */
chan h_ctl = [4] of { mtype, byte, byte };
chan h_data = [WINDOW + 3] of { mtype, byte, byte };
chan g_ctl = [4] of { mtype, byte, byte };
chan g_data = [WINDOW + 3] of { mtype, byte, byte };

mtype host = CHAN_WAIT_REPLY;
mtype guest = CHAN_WAIT_HELLO;

/* per stream: [IN], [OUT] */
mtype h_tx[2] = TX_NONE;
mtype h_rx[2] = RX_NONE;
mtype g_tx[2] = TX_NONE;
mtype g_rx[2] = RX_NONE;
bool h_app[2]; /* the application holds the stream */
bool g_app[2];

byte h_credit = WINDOW; /* host sends on IN */
byte g_credit = WINDOW; /* guest sends on OUT */
byte h_sent, g_sent;    /* bytes given to the queue */
byte h_got, g_got;      /* bytes that the sink took */
byte h_buf, g_buf;      /* bytes that wait for the sink */
byte h_taken, g_taken;  /* taken, credit not returned */
byte h_next, g_next;    /* number of the next byte to arrive */

bool in_told, out_told; /* EOF given to the receiving application */
bool running, started, killed, g_killed, exit_told, exited, main_ended, shutting, said_bye, closed_told;
bool cut;               /* the carrier ended */
bool may_kill;          /* chosen at the start: a KILL must not be what saves a stuck session */

/* An entry is forgotten when both RESETs went through. */
inline h_forget(s)
{
	if
	:: h_tx[s] == TX_RESET && h_rx[s] == RX_RESET -> h_tx[s] = TX_NONE; h_rx[s] = RX_NONE
	:: else
	fi
}

inline g_forget(s)
{
	if
	:: g_tx[s] == TX_RESET && g_rx[s] == RX_RESET -> g_tx[s] = TX_NONE; g_rx[s] = RX_NONE
	:: else
	fi
}

inline h_close(s)
{
	h_app[s] = false;
	h_tx[s] = TX_RESET_QUEUED;
	assert(nfull(h_data));
	h_data!RESET,s,0
}

inline g_close(s)
{
	g_app[s] = false;
	g_tx[s] = TX_RESET_QUEUED;
	assert(nfull(g_data));
	g_data!RESET,s,0
}

/* Sealing: control first. Only in CHAN_OPEN. */
proctype HostOut()
{
	mtype t; byte s, v;
end:	do
	:: atomic { host == CHAN_OPEN && !cut && nfull(to_guest) && nempty(h_ctl) ->
		h_ctl?t,s,v; to_guest!t,s,v }
	:: atomic { host == CHAN_OPEN && !cut && nfull(to_guest) && empty(h_ctl) && nempty(h_data) ->
		h_data?t,s,v;
		if
		:: t == RESET -> h_tx[s] = TX_RESET; h_forget(s)
		:: else
		fi;
		to_guest!t,s,v }
	:: host == CHAN_DEAD && !cut -> break
	od
}

proctype GuestOut()
{
	mtype t; byte s, v;
end:	do
	:: atomic { guest == CHAN_OPEN && !cut && nfull(to_host) && nempty(g_ctl) ->
		g_ctl?t,s,v; to_host!t,s,v }
	:: atomic { guest == CHAN_OPEN && !cut && nfull(to_host) && empty(g_ctl) && nempty(g_data) ->
		g_data?t,s,v;
		if
		:: t == RESET -> g_tx[s] = TX_RESET; g_forget(s)
		:: else
		fi;
		to_host!t,s,v }
	:: guest == CHAN_DEAD && !cut -> break
	od
}

proctype HostIn()
{
	mtype t; byte s, v;
end:	do
	:: atomic { host != CHAN_DEAD && !cut && nempty(to_host) -> to_host?t,s,v;
		if
		:: t == REPLY -> assert(host == CHAN_WAIT_REPLY); host = CHAN_OPEN
		:: t == READY -> assert(host == CHAN_OPEN && !running);
			running = true;
			h_tx[IN] = TX_OPEN; h_rx[IN] = RX_EOF; h_app[IN] = true;
			h_tx[OUT] = TX_EOF; h_rx[OUT] = RX_OPEN; h_app[OUT] = true;
			h_ctl!OPEN_IN,IN,0; h_ctl!OPEN_OUT,OUT,0; h_ctl!RUN,0,0
		:: t == DATA -> assert(s == OUT && h_rx[OUT] == RX_OPEN);
			assert(v == h_next); h_next++;
			if
			:: h_app[OUT] -> h_buf++; assert(h_buf + h_taken <= WINDOW)
			:: else
			fi
		:: t == EOF -> assert(s == OUT && h_rx[OUT] == RX_OPEN); h_rx[OUT] = RX_EOF
		:: t == CREDIT -> assert(s == IN && h_rx[IN] != RX_RESET && h_rx[IN] != RX_NONE);
			h_credit = h_credit + v; assert(h_credit <= WINDOW)
		:: t == RESET -> assert(h_rx[s] != RX_NONE && h_rx[s] != RX_RESET);
			if
			:: h_app[s] && (s == OUT && h_rx[s] == RX_EOF) -> h_rx[s] = RX_RESET
			:: h_app[s] && (s == IN && h_tx[s] == TX_EOF) -> h_rx[s] = RX_RESET
			:: h_app[s] && !(s == OUT && h_rx[s] == RX_EOF) &&
			   !(s == IN && h_tx[s] == TX_EOF) ->
				h_rx[s] = RX_RESET;
				if
				:: s == OUT -> h_buf = 0; out_told = true
				:: else
				fi;
				h_close(s)
			:: !h_app[s] -> h_rx[s] = RX_RESET; h_forget(s)
			fi
		:: t == EXITED -> assert(running && !exit_told); exit_told = true
		:: t == BYE -> assert(shutting); closed_told = true; host = CHAN_DEAD
		fi }
	:: host == CHAN_DEAD && !cut -> break
	od
}

proctype GuestIn()
{
	mtype t; byte s, v;
end:	do
	:: atomic { guest != CHAN_DEAD && !cut && nempty(to_guest) -> to_guest?t,s,v;
		if
		:: t == HELLO -> assert(guest == CHAN_WAIT_HELLO);
			to_host!REPLY,0,0; guest = CHAN_OPEN; g_ctl!READY,0,0
		:: t == OPEN_IN -> assert(g_rx[IN] == RX_NONE);
			g_tx[IN] = TX_EOF; g_rx[IN] = RX_OPEN; g_app[IN] = true
		:: t == OPEN_OUT -> assert(g_rx[OUT] == RX_NONE);
			g_tx[OUT] = TX_OPEN; g_rx[OUT] = RX_EOF; g_app[OUT] = true
		:: t == RUN -> started = true
		:: t == DATA -> assert(s == IN && g_rx[IN] == RX_OPEN);
			assert(v == g_next); g_next++;
			if
			:: g_app[IN] -> g_buf++; assert(g_buf + g_taken <= WINDOW)
			:: else
			fi
		:: t == EOF -> assert(s == IN && g_rx[IN] == RX_OPEN); g_rx[IN] = RX_EOF
		:: t == CREDIT -> assert(s == OUT && g_rx[OUT] != RX_RESET && g_rx[OUT] != RX_NONE);
			g_credit = g_credit + v; assert(g_credit <= WINDOW)
		:: t == RESET -> assert(g_rx[s] != RX_NONE && g_rx[s] != RX_RESET);
			if
			:: g_app[s] && (s == IN && g_rx[s] == RX_EOF) -> g_rx[s] = RX_RESET
			:: g_app[s] && (s == OUT && g_tx[s] == TX_EOF) -> g_rx[s] = RX_RESET
			:: g_app[s] && !(s == IN && g_rx[s] == RX_EOF) &&
			   !(s == OUT && g_tx[s] == TX_EOF) ->
				g_rx[s] = RX_RESET;
				if
				:: s == IN -> g_buf = 0; in_told = true
				:: else
				fi;
				g_close(s)
			:: !g_app[s] -> g_rx[s] = RX_RESET; g_forget(s)
			fi
		:: t == KILL -> g_killed = true
		:: t == SHUTDOWN -> said_bye = true; g_ctl!BYE,0,0
		fi }
	:: guest == CHAN_DEAD && !cut -> break
	:: closed_told -> guest = CHAN_DEAD; break
	od
}

/* The user's side: stdin source, stdout sink, the decision to cancel, the close. */
proctype HostApp()
{
	byte v;
end:	do
	:: atomic { host == CHAN_OPEN && h_app[IN] && h_tx[IN] == TX_OPEN && h_rx[IN] != RX_RESET &&
		    h_sent < N && h_credit > 0 && nfull(h_data) ->
		h_data!DATA,IN,h_sent; h_sent++; h_credit-- }
	:: atomic { host == CHAN_OPEN && h_app[IN] && h_tx[IN] == TX_OPEN && h_rx[IN] != RX_RESET &&
		    h_sent == N && nfull(h_data) -> h_data!EOF,IN,0; h_tx[IN] = TX_EOF }
	/* the sink takes a byte, or rests: nothing forces this step */
	:: atomic { host == CHAN_OPEN && h_app[OUT] && h_buf > 0 -> h_buf--; h_got++; h_taken++ }
	:: atomic { host == CHAN_OPEN && h_app[OUT] && h_rx[OUT] == RX_OPEN && h_taken * 2 >= WINDOW &&
		    nfull(h_ctl) -> h_ctl!CREDIT,OUT,h_taken; h_taken = 0 }
	:: atomic { host == CHAN_OPEN && h_app[OUT] && h_rx[OUT] != RX_OPEN && h_buf == 0 &&
		    !out_told && nfull(h_data) -> out_told = true; h_close(OUT) }
#ifdef RESETS
	/* nobody reads the output any more */
	:: atomic { host == CHAN_OPEN && h_app[OUT] && !out_told && nfull(h_data) ->
		h_buf = 0; out_told = true; h_close(OUT) }
#endif
	:: atomic { host == CHAN_OPEN && may_kill && running && !killed && !exit_told &&
		    nfull(h_ctl) -> h_ctl!KILL,0,0; killed = true }
	/* EXITED to the monitor: only after all output */
	:: atomic { host == CHAN_OPEN && exit_told && out_told && !exited -> exited = true;
		if
		:: h_app[IN] -> h_close(IN)
		:: else
		fi }
	:: atomic { host == CHAN_OPEN && exited && !shutting && nfull(h_ctl) ->
		shutting = true; h_ctl!SHUTDOWN,0,0 }
	:: host == CHAN_DEAD && !cut -> break
	od
}

/* The command: reads its input or not, writes its output, ends; KILL ends it at once. */
proctype Command()
{
end:	do
	:: atomic { guest == CHAN_OPEN && g_app[IN] && g_buf > 0 -> g_buf--; g_got++; g_taken++ }
	:: atomic { guest == CHAN_OPEN && g_app[IN] && g_rx[IN] == RX_OPEN && g_taken * 2 >= WINDOW &&
		    nfull(g_ctl) -> g_ctl!CREDIT,IN,g_taken; g_taken = 0 }
	:: atomic { guest == CHAN_OPEN && g_app[IN] && g_rx[IN] != RX_OPEN && g_buf == 0 &&
		    !in_told && nfull(g_data) -> in_told = true; g_close(IN) }
	:: atomic { guest == CHAN_OPEN && g_app[OUT] && g_tx[OUT] == TX_OPEN && g_rx[OUT] != RX_RESET &&
		    started && !main_ended && g_sent < N && g_credit > 0 && nfull(g_data) ->
		g_data!DATA,OUT,g_sent; g_sent++; g_credit-- }
	:: atomic { guest == CHAN_OPEN && started && !main_ended &&
		    (g_killed || g_sent == N || !g_app[OUT]) -> main_ended = true }
	:: atomic { guest == CHAN_OPEN && main_ended && g_app[OUT] && g_tx[OUT] == TX_OPEN &&
		    nfull(g_data) ->
		g_tx[OUT] = TX_EOF;
		if
		:: g_rx[OUT] != RX_RESET -> g_data!EOF,OUT,0
		:: else
		fi }
	:: atomic { guest == CHAN_OPEN && g_app[OUT] && g_tx[OUT] == TX_EOF && nfull(g_data) ->
		g_close(OUT) }
	/* the command is over: its input, read or not, is closed, then the result is told */
	:: atomic { guest == CHAN_OPEN && main_ended && !g_app[OUT] && g_app[IN] && nfull(g_data) ->
		g_buf = 0; in_told = true; g_close(IN) }
	:: atomic { guest == CHAN_OPEN && main_ended && !g_app[OUT] && !g_app[IN] && in_told &&
		    !said_bye && nfull(g_ctl) -> g_ctl!EXITED,0,0; break }
	:: guest == CHAN_DEAD && !cut -> break
	od
}

#ifdef CUT
proctype Carrier()
{
	atomic { cut = true; host = CHAN_DEAD; guest = CHAN_DEAD }
}
#endif

init
{
	atomic {
		if
		:: may_kill = true
		:: true
		fi;
		to_guest!HELLO,0,0;
		run HostOut(); run GuestOut(); run HostIn(); run GuestIn();
		run HostApp(); run Command();
#ifdef CUT
		run Carrier();
#endif
	};
	/* the end: everybody left, or the carrier ended and nobody may move any more */
#ifdef CUT
	(_nr_pr == 1 || cut)
#else
	(_nr_pr == 1);
	assert(closed_told && exited);
	assert(empty(h_ctl) && empty(g_ctl));
	assert(killed || g_sent == N || !g_app[OUT]);
#ifndef RESETS
	assert(h_got == g_sent);
	assert(killed || g_sent == N);
#endif
#endif
}
